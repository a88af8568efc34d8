"""What a finished seed left, bound together: files swapped between runs, or changed since, are refused.

checksums.json  the hash of rows, probabilities, attention, history and model.json, and of what result.json says
model.json      the hash of the weights in model.safetensors
run.json        the results of all seeds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gamlp.errors import FormatError
from gamlp.storage.checksums import another_run, check_files, checksums_of, json_digest
from gamlp.storage.files import read_json, write_json

CHECKSUMS = "checksums.json"
CHECKSUMS_OF_0_1 = "seals.json"
FILES = ("rows.npy", "probabilities.npy", "attention.npy", "relations.json", "history.json", "model.json")


def keep_result(folder: Path, result: dict[str, Any]) -> None:
    """Write the checksums, then result.json, which says that the seed is finished."""
    whole = {"files": checksums_of(folder / name for name in FILES), "result": json_digest(result)}
    write_json(folder / CHECKSUMS, whole)
    write_json(folder / "result.json", result)


def kept_result(folder: Path) -> dict[str, Any] | None:
    """Return the result of a finished seed, or None where it is not finished."""
    path = folder / "result.json"
    if not path.exists():
        return None
    result = read_json(path)
    if not isinstance(result, dict):
        raise FormatError(f"{path} does not hold the result of a seed.\nRestore it, or train again.")
    found = recorded_checksums(folder)
    if "result" in found and json_digest(result) != found["result"]:
        raise another_run(path)
    return result


def check_kept(folder: Path, *, record: Mapping[str, Any] | None = None, names: Iterable[str] | None = None) -> None:
    """Refuse a seed's folder whose files are not those that it was finished with, or are of another run than `record`.

    With `names` only these files are looked at; runs of versions without checksums are taken as they are.
    """
    result = kept_result(folder)
    mine = [json_digest(one) for one in record["result"]["runs"]] if record is not None else []
    if record is not None and result is not None and json_digest(result) not in mine:
        raise another_run(folder / "result.json")
    check_files(folder, recorded_checksums(folder).get("files", {}), names)


def recorded_checksums(folder: Path) -> dict[str, Any]:
    """Return what the files of a seed must be; nothing, where it has none."""
    path = folder / CHECKSUMS
    path = path if path.exists() else folder / CHECKSUMS_OF_0_1
    found = read_json(path) if path.exists() else {}
    if not isinstance(found, dict) or not isinstance(found.get("files", {}), dict):
        raise FormatError(f"{path} does not describe the files of a seed.\nRestore it, or train again.")
    return found
