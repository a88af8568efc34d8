"""Fill the tables of docs/results.md from the result files in benchmarks/recorded/: no figure there is typed.

    python scripts/results.py              write the tables anew
    python scripts/results.py --check      say which would change, and fail if any would
    python scripts/results.py --record RUN copy the result.json of an experiment of `gamlp paper` there first

A table stands between two comments, <!-- recorded: FILE --> and <!-- end -->; FILE is the record it is made from.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from gamlp.paper.table import markdown

HERE = Path(__file__).parent.parent
RECORDS = HERE / "benchmarks" / "recorded"
PAGE = HERE / "docs" / "results.md"
PLACE = re.compile(r"(<!-- recorded: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a table is not its record's")
    parser.add_argument("--record", type=Path, metavar="RUN", help="a folder of gamlp paper, to be recorded first")
    options = parser.parse_args()
    if options.record:
        print(f"recorded {record(options.record)}")
    text = PAGE.read_text(encoding="utf-8")
    filled = fill(text)
    if options.check and filled != text:
        sys.exit("docs/results.md is not what its records say: run scripts/results.py.")
    if not options.check:
        PAGE.write_text(filled, encoding="utf-8")


def record(run: Path) -> Path:
    """Copy what an experiment came to, without the paths of this machine."""
    result = json.loads((run / "result.json").read_text())
    for cell in result["cells"]:
        cell.pop("run", None)
    result["command"] = f"gamlp paper {result['experiment']}"
    file = RECORDS / f"paper-{result['experiment']}.json"
    file.write_text(json.dumps(result, indent=1) + "\n")
    return file


def fill(text: str) -> str:
    """Return the page with every table made anew."""
    return PLACE.sub(lambda found: found[1] + table(found[2]) + found[3], text)


def table(name: str) -> str:
    """Return the tables of one record, a heading lower than on their own."""
    result: dict[str, Any] = json.loads((RECORDS / name).read_text())
    body = markdown(result).partition("\n\n")[2]  # without the title, which the page has
    return re.sub(r"^## ", "### ", body, flags=re.MULTILINE)


if __name__ == "__main__":
    main()
