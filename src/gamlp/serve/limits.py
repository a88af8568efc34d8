"""How much a client may ask for, and how much may wait: what is more is refused at once, never queued without end.

    body      bytes of one request           rows      new nodes in it         edges     edges in it
    seconds   from its first byte to its answer
    waiting   requests that are read, wait or are worked on at a time: with one more, the answer is 503

One thread works, so that answers come in the order in which requests were whole; memory is bounded by waiting · body
and by one request's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from gamlp.errors import GamlpError, SettingsError, did_you_mean
from gamlp.storage.sizes import parse_size

Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """What one request, and all together, may take."""

    body: int = 4 * 2**20
    rows: int = 1_000
    edges: int = 50_000
    seconds: int = 10
    waiting: int = 32

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Limits:
        """Return the usual limits with some changed: --limit NAME=NUMBER, the body as a size."""
        names, found = [field.name for field in fields(cls)], {}
        for name, text in given.items():
            if name not in names:
                raise SettingsError(f"--limit {name}=…: there is no such limit.\n{did_you_mean(name, names)}")
            if name == "body":
                found[name] = parse_size(text, "--limit body")
            elif not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**31:
                raise SettingsError(f"--limit {name}={text}: this is no such number.\nWrite a whole number from 1 on.")
            else:
                found[name] = int(text)
        return cls(**found)


class TooMuch(GamlpError):  # noqa: N818  the request is right, its size is not
    """A request is larger than the limits allow."""


class Overloaded(GamlpError):  # noqa: N818  not a mistake of anybody
    """More requests are under way than may wait."""


class Gate:
    """Lets so many requests in, and one at a time to work."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.inside = limits, 0
        self._turn = asyncio.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="gamlp-serve")

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[float]:
        """Take a place, or refuse; yield the moment by which the request must be answered."""
        if self.inside >= self.limits.waiting:
            raise Overloaded(
                f"{self.inside} requests are under way, as many as may be.\n"
                "Try again in a second; send several nodes in one request rather than many requests."
            )
        self.inside += 1
        try:
            yield asyncio.get_running_loop().time() + self.limits.seconds
        finally:
            self.inside -= 1

    async def run(self, work: Callable[[], Result], deadline: float) -> Result:
        """Do some work in the thread when its turn comes; what is begun is finished, answered in time or not."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout_at(deadline):
            await self._turn.acquire()
        future = loop.run_in_executor(self._pool, work)
        future.add_done_callback(self._next)
        done, _ = await asyncio.wait({future}, timeout=max(0.0, deadline - loop.time()))
        if not done:
            raise TimeoutError
        return future.result()

    def _next(self, future: asyncio.Future[Any]) -> None:
        self._turn.release()
        if not future.cancelled():
            future.exception()  # looked at, though nobody may wait for it any more

    def close(self) -> None:
        """Wait for the work under way."""
        self._pool.shutdown(wait=True)
