"""The ``fusionq`` command."""
