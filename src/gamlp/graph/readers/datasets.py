"""The data sets known by name: what they are, where their files belong, and how to read them.

Nothing is fetched: the files of a data set are put below a root folder (`data` unless told otherwise), in the layout
that PyTorch Geometric and OGB use; `debian` and `debian-hetero` are built in. Sizes are the published ones, so a list
needs no loading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError, InputError, MissingFileError, SettingsError, did_you_mean
from gamlp.graph.encode import Columns
from gamlp.graph.graph import Graph
from gamlp.graph.readers import debian, ogb, planetoid
from gamlp.graph.readers.convert import from_pyg, from_pyg_hetero
from gamlp.graph.readers.databases import is_database, is_database_table
from gamlp.graph.readers.npz_arrays import read_npz
from gamlp.graph.readers.table import is_table
from gamlp.graph.readers.tables import (
    HETERO,
    GraphFiles,
    open_tables,
    read_hetero_tables,
    read_tables,
    table_stem,
    tables_in,
)
from gamlp.graph.store import is_graph_folder, load_graph

ROOT = Path("data")
IMPORTED = "gamlp"  # the graph directory in the folder of a data set that was imported within a memory limit


@dataclass(frozen=True)
class Dataset:
    """Published sizes, the folders below the root (any of them), the files in it (any of the lists), the reader."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    split: tuple[int, int, int]  # train, valid, test
    folders: tuple[str, ...] = ()  # none = built in
    files: tuple[tuple[str, ...], ...] = ()
    read: Callable[[Path], Graph] = field(kw_only=True)  # from its folder
    open: Callable[[Path], GraphFiles] | None = None  # of those that can be imported within a memory limit

    def lacking(self, root: Path) -> tuple[Path, list[str]]:
        """Return the folder that lacks fewest files of one of the lists, and these, below the root."""
        options = [
            (root / folder, [f"{folder}/{file}" for file in files if not (root / folder / file).is_file()])
            for folder in self.folders
            for files in self.files
        ]
        return min(options, key=lambda option: len(option[1]), default=(root, []))

    def find(self, root: Path | None) -> Path:
        """Return the folder that holds all files of one of the lists, or say which are missing."""
        root = Path(root or ROOT)
        folder, missing = self.lacking(root)
        if missing:
            raise MissingFileError(
                f"{self.name} is not complete below {root}: {len(missing)} of its files are missing.\n"
                f"Put these files there (or name another folder with --root): {', '.join(missing)}"
            )
        return folder

    def is_large(self, memory: int) -> bool:
        """Say whether its features would take up much of the memory, and it can be read in another way."""
        return self.open is not None and 4 * self.nodes * self.features > memory // 8

    def imported(self, root: Path | None, *, memory: int) -> Graph:
        """Return it from a graph directory beside its raw files, which is made within so much memory the first time."""
        from gamlp.graph.build.import_directory import import_files

        folder = self.find(root)
        assert self.open is not None
        if not is_graph_folder(folder / IMPORTED):
            import_files(folder / IMPORTED, self.open(folder), memory=memory)
        return load_graph(folder / IMPORTED)


@dataclass(frozen=True)
class DatasetInfo:
    """One line of the list of data sets. Edges are undirected ones, for OGB's data the published number."""

    name: str
    nodes: int
    edges: int
    features: int
    classes: int
    train: int
    valid: int
    test: int
    place: str  # the folder of its files below the root; empty if built in
    on_disk: bool
    built_in: bool


def load_dataset(name: str, root: Path | None = None) -> Graph:
    """Read a data set by its name."""
    dataset = find_dataset(name)
    if dataset is None:
        raise MissingFileError(f"There is no data set '{name}'.\n{did_you_mean(name, DATASETS)}")
    return dataset.read(dataset.find(root))


def find_dataset(name: str) -> Dataset | None:
    """Look a name up; upper and lower case, _ and - are the same."""
    return {known.lower(): dataset for known, dataset in DATASETS.items()}.get(name.lower().replace("_", "-"))


def describe_datasets(root: Path | None = None) -> list[DatasetInfo]:
    """List the known data sets, and which of them are on disk."""
    return [
        DatasetInfo(
            *(dataset.name, dataset.nodes, dataset.edges, dataset.features, dataset.classes, *dataset.split),
            *(next(iter(dataset.folders), ""), not dataset.lacking(Path(root or ROOT))[1], not dataset.folders),
        )
        for dataset in DATASETS.values()
    ]


def read_graph(
    what: Any, *, root: Path | None = None, encoding: Mapping[str, Columns] | None = None, **table_options: Any
) -> Graph:
    """Read a graph from a known name (tried first), a graph directory, tables, or an object of PyTorch Geometric.

    Tables are the edges, or a list of edges and nodes. Each is a file, a data frame of pandas or Polars, a DuckDB
    relation, or an Arrow table; edges may also be an edge_index (2, E), and nodes a matrix of features. A folder or a
    database may hold both, as `edges` and `nodes`. Options are those of `gamlp.graph.readers.tables.open_tables`;
    `encoding` is how the columns of another graph's tables became features, `graph.encoded.columns`.
    """
    if hasattr(what, "edge_index") or hasattr(what, "edge_types"):
        return read_pyg(what, table_options)
    given, options = both_tables(what, table_options)
    if are_files(given, options):
        return read_tables(*given, encoding=encoding, **options)
    name, folder = str(given[0]), Path(given[0])
    if find_dataset(name) is not None:
        return load_dataset(name, root)
    if is_graph_folder(folder):
        return load_graph(folder)
    if (folder / HETERO).is_file():
        return read_hetero_tables(folder, encoding)
    if folder.is_dir() or is_database(folder):
        raise FormatError(
            f"{folder} is a {'folder without graph.json' if folder.is_dir() else 'database without a table edges'}.\n"
            "Expected a graph directory, a folder with hetero.toml, with Parquet files, or with tables named edges and "
            "nodes, or a database with such tables. The raw files of a known data set are read by its name and --root."
        )
    raise MissingFileError(f"There is no data set, folder or file '{name}'.\n{did_you_mean(name, DATASETS)}")


def read_pyg(data: Any, options: dict[str, Any]) -> Graph:
    """Take a graph from a `Data` or a `HeteroData`; of the options, they know `directed`."""
    others = sorted(
        key for key, value in options.items() if value is not None and value is not False and key != "directed"
    )
    hetero = hasattr(data, "edge_types")
    if others or (hetero and options.get("directed")):
        raise SettingsError(
            f"{', '.join(others) or 'directed'} was given for a {type(data).__name__} object.\n"
            "It says itself what its parts are: leave the options out."
        )
    return from_pyg_hetero(data) if hetero else from_pyg(data, symmetric=not options.get("directed"))


def open_graph(what: Sequence[str | Path], *, root: Path | None = None, **table_options: Any) -> GraphFiles:
    """Open table files, or one of OGB's data sets, to be imported within a memory limit."""
    given, options = both_tables(what, table_options)
    if are_files(given, options):
        if any(is_database_table(path) for path in map(Path, given)):
            raise SettingsError(
                f"--memory was given for {Path(given[0]).parent}: tables of a database are held in memory.\n"
                "Leave it out, or write the tables to Parquet files, which are read in chunks."
            )
        return open_tables(*given, **options)
    dataset = find_dataset(str(given[0]))
    if dataset is None or dataset.open is None:
        raise SettingsError(
            f"--memory was given for '{given[0]}', which is neither a file of edges nor one of OGB's data sets.\n"
            "Leave it out: this graph is read as a whole."
        )
    return dataset.open(dataset.find(root))


def both_tables(what: Any, options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what was given as a list; of a folder or database with both tables these, which it gives its name."""
    given = list(what) if isinstance(what, list | tuple) else [what]
    place = Path(given[0]) if len(given) == 1 and is_name(given[0]) and find_dataset(str(given[0])) is None else None
    if place is None or is_graph_place(place):
        return given, options
    found = tables_in(place) if place.is_dir() or is_database(place) else []
    return (found, {**options, "name": table_stem(place)}) if found else (given, options)


def is_graph_place(folder: Path) -> bool:
    """Say whether a folder says by itself what it holds: a graph directory, or tables that hetero.toml names."""
    return is_graph_folder(folder) or (folder / HETERO).is_file()


def options_given(options: dict[str, Any]) -> list[str]:
    """Return the names of options that say something."""
    empty = (str, tuple, list, bool, type(None))  # of these, what is empty says nothing
    return sorted(key for key, value in options.items() if not isinstance(value, empty) or value)


def is_name(given: Any) -> bool:
    """Say whether this is a name, and no object."""
    return isinstance(given, str | Path)


def are_files(given: Sequence[Any], table_options: dict[str, Any]) -> bool:
    """Say whether EDGES [NODES] were given, rather than a data set or a folder, for which the options mean nothing."""
    if not given or len(given) > 2:
        raise InputError(
            f"{len(given)} graphs or files were named.\n"
            "Name one data set, one graph directory, or the edges and the nodes of one graph."
        )
    if not is_name(given[0]):
        return True
    first, known = Path(given[0]), len(given) == 1 and find_dataset(str(given[0])) is not None
    there = first.is_file() or is_database_table(first) or (first.is_dir() and is_table(first))
    files = there and not is_database(first) and not known and not is_graph_place(first)
    if len(given) == 2 and not files:
        raise MissingFileError(f"{first} is not there, or no file.\nOf two files, the first must be the list of edges.")
    if not known and first.exists() and not first.is_file() and not first.is_dir():
        raise FormatError(f"{first} is not a regular file.\nA file of edges, or a graph directory, was expected.")
    options = options_given(table_options)
    if options and not files:
        raise SettingsError(
            f"{', '.join(options)} was given for '{given[0]}', which is not a file.\n"
            "These options say how to read table files; leave them out."
        )
    return files


def _planetoid(
    title: str, sizes: tuple[int, int, int, int], split: tuple[int, int, int], *, supervised: bool = False
) -> Dataset:
    name = title.lower()
    return Dataset(
        *(planetoid.named(name, supervised), *sizes, split, (f"{title}/raw",), (planetoid.files(name),)),
        read=lambda folder: planetoid.read_planetoid(folder, name, supervised=supervised),
    )


def _npz(title: str, file: str, sizes: tuple[int, int, int, int], *, connected: bool = False) -> Dataset:
    nodes, classes, name = sizes[0], sizes[3], title.lower() + "-lcc" * connected
    return Dataset(
        *(name, *sizes, (20 * classes, 30 * classes, nodes - 50 * classes), (f"{title}/raw",), ((file,),)),
        read=lambda folder: read_npz(folder / file, name, connected=connected),
    )


def _ogb(name: str, sizes: tuple[int, int, int, int], split: tuple[int, int, int], made: str) -> Dataset:
    ids = tuple(f"split/{made}/{part}" for part in ogb.SETS)
    files = tuple((*(f"raw/{file}" for file in form), *ids) for form in (ogb.TEXT, ogb.BINARY))
    return Dataset(
        *(name, *sizes, split, (name.replace("-", "_"), name), files),
        read=lambda folder: ogb.read_ogb(folder, name, split=made),
        open=lambda folder: ogb.open_ogb(folder, name, split=made),
    )


PACKAGES = (6_344, 1_903, 55_189)  # train, valid, test of both Debian graphs
DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (  # nodes, edges, features, classes; train, valid, test
        Dataset("debian", 63_436, 318_970, 128, 58, PACKAGES, read=lambda _: debian.load_debian()),
        Dataset("debian-hetero", 100_296, 557_960, 128, 58, PACKAGES, read=lambda _: debian.load_debian_hetero()),
        _planetoid("Cora", (2_708, 5_278, 1_433, 7), (140, 500, 1_000)),
        _planetoid("CiteSeer", (3_327, 4_552, 3_703, 6), (120, 500, 1_000)),
        _planetoid("PubMed", (19_717, 44_324, 500, 3), (60, 500, 1_000)),
        _planetoid("Cora", (2_708, 5_278, 1_433, 7), (1_208, 500, 1_000), supervised=True),
        _planetoid("CiteSeer", (3_327, 4_552, 3_703, 6), (1_812, 500, 1_000), supervised=True),
        _planetoid("PubMed", (19_717, 44_324, 500, 3), (18_217, 500, 1_000), supervised=True),
        _npz("Computers", "amazon_electronics_computers.npz", (13_752, 245_861, 767, 10)),
        _npz("Computers", "amazon_electronics_computers.npz", (13_381, 245_778, 767, 10), connected=True),
        _npz("Photo", "amazon_electronics_photo.npz", (7_650, 119_081, 745, 8)),
        _npz("Photo", "amazon_electronics_photo.npz", (7_487, 119_043, 745, 8), connected=True),
        _npz("CS", "ms_academic_cs.npz", (18_333, 81_894, 6_805, 15)),
        _npz("Physics", "ms_academic_phy.npz", (34_493, 247_962, 8_415, 5)),
        _ogb("ogbn-arxiv", (169_343, 1_166_243, 128, 40), (90_941, 29_799, 48_603), "time"),
        _ogb("ogbn-products", (2_449_029, 61_859_140, 100, 47), (196_615, 39_323, 2_213_091), "sales_ranking"),
        _ogb("ogbn-papers100M", (111_059_956, 1_615_685_872, 128, 172), (1_207_179, 125_265, 214_338), "time"),
        Dataset(
            *("ogbn-mag", 1_939_743, 21_111_007, 128, 349, (629_571, 64_879, 41_939)),
            *(("ogbn_mag", "ogbn-mag"), (ogb.MAG_FILES,)),
            read=lambda folder: ogb.read_ogb_hetero(folder, "ogbn-mag"),
        ),
    )
}
