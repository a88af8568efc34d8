"""The pages of the documentation, and the code blocks in them.

A block ```python or ```sh is run, in the order of the page. A comment right above a block can say otherwise:

    <!-- not run: REASON -->      the block is left out; the names and options of its gamlp commands are still checked
    <!-- run with: OPTIONS -->    these options are added to each gamlp train, compare or tune in the block
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(?:<!-- (not run|run with): (.+?) -->\n+)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    line: int
    left_out: str  # why it is not run
    options: tuple[str, ...]  # what is added to make it short


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for one in BLOCK.finditer(text):
        how, words, language, code = one.groups()
        line = text[: one.start(4)].count("\n") + 1
        options = tuple(words.split()) if how == "run with" else ()
        found.append(Block(language, code, line, words if how == "not run" else "", options))
    return found


def commands(block: Block) -> list[str]:
    """Return the commands of a shell block, one a line; a backslash at the end goes on in the next line."""
    joined = block.code.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
