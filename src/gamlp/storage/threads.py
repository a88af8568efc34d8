"""Threads: compiled work on a few of them, reading ahead, and one task in the background.

    with workers() as run: run(tasks)              all processors; each thread takes the next task when it is done
    for chunk in prefetch(chunks): …               the next chunk is made while this one is in use
    with background() as start: start(write, x)    runs while the caller goes on; the next start waits for it

Plain Python threads do: the kernels hold no interpreter lock, and a task takes far longer than handing it out. Unlike
OpenMP's, these threads are gone when the work is done, so a later fork is safe.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

SPIN_COUNT = "30000"  # turns of a loop: a millisecond or two

Item = TypeVar("Item")
Task = Callable[[], Any]
Run = Callable[[Sequence[Task]], list[Any]]


def available() -> int:
    """Return how many threads may run: the processors given to this process, or OMP_NUM_THREADS if that is fewer."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(processors, int(limit))) if limit.isdigit() else processors


def limit_openmp_spin() -> None:
    """Let the threads of torch's products sleep soon after one; to be called before torch is imported.

    By default libgomp's wait for the next product in a loop, for many milliseconds where a turn is slow, as on Intel's
    processors, and meanwhile other threads, ours too, have a processor less. What the environment says comes first.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


@contextmanager
def workers(threads: int | None = None) -> Iterator[Run]:
    """Yield a function that runs tasks and returns their results in order; one thread means this one."""
    threads = threads or available()
    if threads == 1:
        yield lambda tasks: [task() for task in tasks]
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="gamlp") as pool:

        def run(tasks: Sequence[Task]) -> list[Any]:
            if len(tasks) == 1:
                return [tasks[0]()]
            return [future.result() for future in [pool.submit(task) for task in tasks]]

        yield run


def prefetch(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, each made by a thread while the one before is in use: two buffers in turn are enough."""
    iterator, end = iter(items), object()
    with ThreadPoolExecutor(1, thread_name_prefix="gamlp-read") as reader:
        waiting: Future[Any] = reader.submit(next, iterator, end)
        while (item := waiting.result()) is not end:
            waiting = reader.submit(next, iterator, end)
            yield item


@contextmanager
def background() -> Iterator[Callable[..., None]]:
    """Yield a function that starts a call in a thread; what the call raises is raised by the next start, or the end."""
    with ThreadPoolExecutor(1, thread_name_prefix="gamlp-write") as writer:
        running: list[Future[Any]] = []

        def start(function: Callable[..., Any], *arguments: Any) -> None:
            while running:
                running.pop().result()
            running.append(writer.submit(function, *arguments))

        yield start
        while running:
            running.pop().result()


def ranges(count: int, size: int) -> list[tuple[int, int]]:
    """Cut 0 … count−1 into ranges of at most `size`."""
    return [(at, min(at + size, count)) for at in range(0, count, size)]
