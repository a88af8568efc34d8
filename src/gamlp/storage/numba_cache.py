"""numba's compiled code on disk, keyed by the content of every source file that it was compiled from.

    @cached_njit                              nogil, cached
    def total(values): ...

    @cached_njit(fastmath={"contract"})       and any other option of numba.njit

numba.njit(cache=True) looks at the file of the function alone. What that function calls in an imported module is
compiled into it, as are imported constants, and both stay as they were when the other file changes. Here the key is a
hash of the function's file and of all files of its package that are imported at the top of it, directly or not.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, overload

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

Kernel = Callable[..., Any]  # numba infers the types of a call


@overload
def cached_njit(function: Kernel) -> Kernel: ...
@overload
def cached_njit(*, nogil: bool = True, **options: Any) -> Callable[[Kernel], Kernel]: ...
def cached_njit(function: Any = None, *, nogil: bool = True, **options: Any) -> Any:
    """Compile a function with numba.njit, without the interpreter's lock, and cache the result on disk."""
    if function is None:
        return functools.partial(cached_njit, nogil=nogil, **options)
    dispatcher = njit(nogil=nogil, **options)(function)
    if not hasattr(dispatcher, "py_func"):  # NUMBA_DISABLE_JIT: the function itself
        return dispatcher
    dispatcher._cache = _ContentCache(function)  # what njit(cache=True) does, with another key
    return dispatcher


class _ContentCache(FunctionCache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        path = Path(inspect.getfile(function))
        if path.is_file():  # else a notebook's cell or a zip archive: numba's own key
            depth = function.__module__.count(".") + (path.name == "__init__.py")
            key = content_key(path, path.parents[depth])
            self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, source_stamp=key)


@functools.cache
def content_key(path: Path, root: Path) -> str:
    """Return a hash of a module's file and of what it imports from its package, which lies in `root`."""
    found, waiting = set(), {path}
    while waiting:
        found |= waiting
        waiting = {file for path in waiting for file in imported_files(path, root)} - found
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(found)]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


@functools.cache
def imported_files(path: Path, root: Path) -> tuple[Path, ...]:
    """Return the files of the same package that the module at `path` imports at its top level."""
    package = path.relative_to(root).parts[0].removesuffix(".py")
    places = (root.joinpath(*name.split(".")) for name in _imported_names(path, root))
    files = (file for place in places for file in (place.with_name(place.name + ".py"), place / "__init__.py"))
    return tuple(file for file in files if file.relative_to(root).parts[0] == package and file.is_file())


def _imported_names(path: Path, root: Path) -> Iterator[str]:
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            above = path.parents[statement.level - 1].relative_to(root).parts if statement.level else ()
            module = ".".join((*above, *([statement.module] if statement.module else [])))
            yield module
            yield from (f"{module}.{alias.name}" for alias in statement.names)
