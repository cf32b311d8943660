"""Write the table of docs/target.md that says where each field of a ``Target`` comes from.

python docs/make_target.py          writes the table
python docs/make_target.py --check  fails if the table is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from fusionq.base.assumptions import ASSUMED
from fusionq.base.code_limits import CodeLimits
from fusionq.base.costs import BuildCosts, Costs, Weights
from fusionq.base.target import Target

PAGE = Path(__file__).with_name("target.md")
START = "<!-- The table is made by docs/make_target.py. -->\n"
END = "<!-- The end of that table. -->\n"


def table() -> str:
    """The table as Markdown."""
    lines = [
        "| field | asked or measured | else on a CPU | else on a GPU | source of that |",
        "|---|---|---|---|---|",
        *rows(),
    ]
    return "\n".join(lines) + "\n"


def rows() -> Iterator[str]:
    """A line for each field of which something is assumed."""
    kinds = (Target, Costs, Weights, CodeLimits, BuildCosts)
    names = [field.name for kind in kinds for field in fields(kind)]
    for name in names:
        if name in ASSUMED:
            a = ASSUMED[name]
            yield f"| `{name}` | {a.known} | {_number(a.cpu)} | {_number(a.gpu)} | {a.source} |"


def _number(value: int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def main() -> int:
    """Run the command line."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    wanted = f"{before}{START}\n{table()}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        if text != wanted:
            print(f"{PAGE.name} is out of date: run python docs/{Path(__file__).name}")
            return 1
        return 0
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
