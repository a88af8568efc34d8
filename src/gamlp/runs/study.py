"""The file of a search: an Optuna study in SQLite, with the order that it serves, so that it can be taken up again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamlp.errors import InputError, MissingExtraError, MissingFileError, StorageError
from gamlp.runs.run import Order

if TYPE_CHECKING:
    import optuna

NAME = "gamlp tune"


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

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.RDBStorage(f"sqlite:///{file.absolute()}")
        try:
            yield optuna.create_study(
                study_name=NAME,
                storage=storage,
                direction="maximize",
                pruner=optuna.pruners.MedianPruner(),
                load_if_exists=True,
            )
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError, OSError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise StorageError(
            f"The study {file} cannot be read or written: {reason}.\n"
            "Free some space, restore the file, or name another one with --study."
        ) from error


def begin(file: Path, order: Order, *, trials: int, out: Path) -> None:
    """Make the file of a new search; files that are there are left alone."""
    if file.exists():
        raise InputError(f"{file} is there already.\nGo on with it by --resume {file}, or name another with --study.")
    if out.exists():
        raise InputError(f"{out} is there already.\nName another recipe with --out.")
    with study_in(file) as study:
        for key, value in {"order": asdict(order), "trials": trials, "out": str(out.absolute())}.items():
            study.set_user_attr(key, value)


def asked(file: Path) -> Mapping[str, Any]:
    """Return what a search was asked for: order, trials, out."""
    if not file.is_file():
        raise MissingFileError(f"{file} is not there.\nName the study that gamlp tune made.")
    with study_in(file) as study:
        attributes = dict(study.user_attrs)
    if "order" not in attributes:
        raise InputError(f"{file} is not a study of gamlp tune.\nName the one that stands beside the recipe.")
    return {**attributes, "order": Order(**attributes["order"])}
