"""The file of a search: an Optuna study in SQLite that keeps what is searched for, so that it can be taken up again.

A new file is made elsewhere and put in its place whole: a kill leaves none, or one that can be gone on with.
"""

from __future__ import annotations

import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamlp.errors import InputError, MissingExtraError, MissingFileError, StorageError
from gamlp.runs.spec import RunSpec
from gamlp.storage.files import replacing
from gamlp.storage.validated import parsed

if TYPE_CHECKING:
    import optuna

SPEC = "spec"


class SearchSpec(RunSpec):
    """What a search begins with, how many trials it makes, and the recipe that it writes."""

    command = ("tune", "method", "trials", "out")
    trials: int
    out: Path


def optuna_or_error() -> Any:
    """Import Optuna and keep it quiet; without it, say how to get it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import optuna
    except ImportError as error:
        raise MissingExtraError("tune", "Searching for settings") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


@contextmanager
def study_in(file: Path) -> Iterator[optuna.Study]:
    """Open the study of a file, or begin one; the file is closed at the end of the block."""
    optuna = optuna_or_error()
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    def connect() -> sqlite3.Connection:  # by the path itself: in a URL, ? and { mean something
        return sqlite3.connect(file.absolute(), check_same_thread=False)

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.RDBStorage("sqlite://", {"creator": connect, "poolclass": NullPool})
        try:
            shared = {"study_name": "gamlp tune", "storage": storage, "pruner": optuna.pruners.MedianPruner()}
            yield optuna.create_study(**shared, direction="maximize", load_if_exists=True)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError, OSError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise StorageError(
            f"The study {file} cannot be read or written: {reason}.\n"
            "Free some space, restore the file, or name another one with --study."
        ) from error


def begin(file: Path, spec: SearchSpec) -> None:
    """Make the file of a new search; files that are there are left alone."""
    if file.exists() and spec_in(file) is not None:
        raise InputError(f"{file} is there already.\nGo on with it by --resume {file}, or name another with --study.")
    if spec.out.exists():
        raise InputError(f"{spec.out} is there already.\nName another recipe with --out.")
    with tempfile.TemporaryDirectory(prefix="gamlp-study-") as folder:
        made = Path(folder) / "study.sqlite"
        with study_in(made) as study:
            study.set_user_attr(SPEC, spec.model_dump(mode="json"))
        with replacing(file) as out:
            out.write(made.read_bytes())


def asked(file: Path) -> SearchSpec:
    """Return what a search was asked for."""
    if not file.is_file():
        raise MissingFileError(f"{file} is not there.\nName the study that gamlp tune made.")
    found = spec_in(file)
    if found is None:
        raise InputError(f"{file} is not a study of gamlp tune.\nName the one that stands beside the recipe.")
    return parsed(found, SearchSpec, file)


def spec_in(file: Path) -> Any:
    """Return the specification in a study's file; None where a kill of gamlp 0.1.0 left a study without any."""
    with study_in(file) as study:
        attributes, begun = dict(study.user_attrs), bool(study.get_trials(deepcopy=False))
    if "order" in attributes:
        raise InputError(f"{file} was begun by gamlp 0.1.0.\nBegin anew with another --study.")
    return attributes.get(SPEC, {} if begun else None)
