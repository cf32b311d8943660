"""``python -m fusionq`` is the ``fusionq`` command."""

from fusionq.cli.main import main

main()
