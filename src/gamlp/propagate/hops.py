"""X, ÂX, …, ÂᴷX for some rows, laid out so that a batch is one gather."""

from __future__ import annotations

from dataclasses import dataclass

from gamlp.errors import NotFiniteError
from gamlp.storage.files import Array


@dataclass(frozen=True, eq=False)
class Hops:
    """Propagated features: values (R, K+1, F), in memory or memory-mapped, float32 or float16.

    With relation subsets they are (R, S, K+1, F).

    `rows` names the node of each of the R rows; None = all nodes in order. `key` says what it was computed from
    (graph, features, normalisation, hops, storage), so that a cache never answers for another graph.
    `stationary` (R, F) is X^(∞), where it was asked for.
    """

    values: Array
    rows: Array | None = None
    stationary: Array | None = None
    key: str = ""

    @property
    def count(self) -> int:
        """K, the number of hops beyond the features themselves."""
        return int(self.values.shape[-2]) - 1

    @property
    def subsets(self) -> int:
        """S, the number of relation subsets; 0 where there are none."""
        return int(self.values.shape[1]) if self.values.ndim == 4 else 0


def too_large(what: str) -> NotFiniteError:
    """Return the error for values that float16 cannot hold."""
    return NotFiniteError(
        f"{what} are NaN or larger than 65,504, the largest number float16 can hold.\n"
        "Store hops as float32, or scale the features first."
    )
