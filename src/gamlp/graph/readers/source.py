"""Where a graph comes from: what a command line names, a run keeps, and every command can read again.

`GraphSource.named(["edges.csv", "nodes.csv"], columns={"label": "genre"})` checks the words and makes paths absolute,
`source.read()` reads the graph, and `source.words()` are the words of a command line that name it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from gamlp.errors import SettingsError, check_utf8, did_you_mean

if TYPE_CHECKING:
    from gamlp.graph.build.new_nodes import NewNodes
    from gamlp.graph.encode import Columns
    from gamlp.graph.graph import Graph
    from gamlp.graph.readers.tables import GraphFiles

Role = Literal["source", "target", "weight", "id", "label", "split"]
ROLES: tuple[Role, ...] = ("source", "target", "weight", "id", "label", "split")


class GraphSource(BaseModel):
    """A known data set, a graph directory, or table files with the columns to be read. Paths are absolute."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: tuple[str, ...]  # a name, a folder, or EDGES [NODES]
    root: Path | None = None  # the folder with data sets, for one that is not built in
    columns: dict[Role, str] = {}
    ignore: tuple[str, ...] = ()  # columns that are no features
    features: Path | None = None
    directed: bool = False

    @classmethod
    def named(
        cls,
        what: Sequence[str | Path] | None,
        *,
        root: Path | None = None,
        columns: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        features: Path | None = None,
        directed: bool = False,
    ) -> GraphSource:
        """Return the source that these words name; `root` is left out where nothing is read below it."""
        from gamlp.graph.readers.databases import is_database_table
        from gamlp.graph.readers.datasets import ROOT, find_dataset

        if not what:
            raise SettingsError("No graph was named.\nGive a data set, a graph directory, or EDGES [NODES] files.")
        for role in columns or {}:
            if role not in ROLES:
                raise SettingsError(f"--column {role}=…: there is no such role.\n{did_you_mean(role, ROLES)}")
        for word in (*what, root or "", features or "", *(columns or {}).values(), *ignore):
            check_utf8(str(word))

        def located(word: str | Path) -> str | Path:
            there = Path(word).exists() or is_database_table(Path(word))
            return Path(word).resolve() if there else word

        dataset = find_dataset(str(what[0])) if len(what) == 1 else None
        return cls(
            what=tuple(str(word if dataset else located(word)) for word in what),
            root=(ROOT if root is None else root).resolve() if dataset and dataset.folders else None,
            columns=dict(columns or {}),
            ignore=tuple(ignore),
            features=None if features is None else features.resolve(),
            directed=directed,
        )

    @property
    def title(self) -> str:
        """The names without their folders."""
        return " ".join(Path(word).name for word in self.what)

    def read(self, encoding: Mapping[str, Columns] | None = None, *, memory: int | None = None) -> Graph:
        """Read the graph; one of OGB's data sets that is large for `memory` is imported first, beside its raw files.

        Columns of tables become features as `encoding` says, or as they teach themselves.
        """
        from gamlp.graph.readers.datasets import find_dataset, read_graph

        dataset = find_dataset(self.what[0]) if len(self.what) == 1 else None
        if memory is not None and dataset is not None and dataset.is_large(memory):
            return dataset.imported(self.root, memory=memory)
        return read_graph(self.what, root=self.root, encoding=encoding, **self._table_options)

    def open(self) -> GraphFiles:
        """Open its files, to be imported within a memory limit; what is read as a whole is refused."""
        from gamlp.graph.readers.datasets import open_graph

        return open_graph(self.what, root=self.root, **self._table_options)

    def read_beside(self, graph: Graph) -> NewNodes:
        """Read the tables as nodes that `graph` does not have yet, and the edges that join them to it."""
        from gamlp.graph.readers.change_tables import read_new_nodes
        from gamlp.graph.readers.datasets import both_tables

        files = both_tables(self.what, {})[0]
        if len(files) != 2:
            raise SettingsError(
                f"New nodes are told by two tables, their edges and the nodes; '{self.title}' was named.\n"
                "Name both: --new EDGES NODES."
            )
        return read_new_nodes(graph, *files, **self._table_options)

    @property
    def _table_options(self) -> dict[str, Any]:
        roles = {str(role): name for role, name in self.columns.items()}
        return {**roles, "ignore": self.ignore, "features": self.features, "directed": self.directed}

    def words(self) -> list[str]:
        """Return the words of a command line that name this source, wherever it is run."""
        columns = [("--column", f"{role}={column}") for role, column in self.columns.items()]
        ignored = [("--ignore", name) for name in self.ignore]
        options = [("--root", self.root), *columns, *ignored, ("--features", self.features)]
        given = [str(word) for option in options if option[1] is not None for word in option]
        return [*self.what, *given, *(["--directed"] if self.directed else [])]
