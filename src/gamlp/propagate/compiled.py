"""Compile a kernel once for each machine: what numba stores on disk is good as long as all kernels' source is the same.

numba alone looks at the date of the file in which a function stands, and would go on with code that was compiled from
an older `float16` or `kernels`. Here the stamp of every compiled function is a hash of the content of all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

SOURCES = ("compiled.py", "float16.py", "kernels.py", "layout.py")


def source_stamp() -> str:
    """Return the hash of everything that kernels are compiled from."""
    content = b"\0".join(Path(__file__).with_name(name).read_bytes() for name in SOURCES)
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile without the interpreter's lock, and keep the code on disk."""
    compiled = njit(nogil=True, cache=True)(function)
    compiled._cache._cache_file._source_stamp = source_stamp()
    return compiled
