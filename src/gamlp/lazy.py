"""Names of a package that are imported when they are first used: `import gamlp` loads neither torch nor scipy.

The imports below `if TYPE_CHECKING:` are the table: `gamlp.graph.Split` runs the line that names it, nothing else.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_imports(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: it imports what stands below the package's `if TYPE_CHECKING:`."""

    @cache
    def modules() -> dict[str, str]:
        tree = ast.parse(Path(str(sys.modules[package].__file__)).read_bytes())
        blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def import_name(name: str) -> Any:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules()[name]), name)

    return import_name
