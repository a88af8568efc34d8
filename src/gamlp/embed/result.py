"""What training gives, and the folder that holds it.

checkpoint.npz     tables, sums of Adagrad and the step, replaced whole while training; gone when it is finished
entities.npy       (N, d) float32, can be memory-mapped
relations.npy      (R, d) float32
embeddings.json    settings, seed, scores, names of the relations, a hash of the triples; written last
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gamlp.embed.ranking import Ranking, Scores
from gamlp.embed.settings import EmbeddingSettings, embedding_settings_from
from gamlp.errors import FormatError, SettingsError, StorageError
from gamlp.storage import huge_pages
from gamlp.storage.checksums import check_files, checksums_of
from gamlp.storage.files import Array, check_header, forget, read_array, read_json, replacing, write_array, write_json

FORMAT = 1
READ = 2**24  # bytes at a time


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Learned rows; `scores` is None where no triple could be held out."""

    entities: Array
    relations: Array
    scores: Scores | None
    settings: EmbeddingSettings
    seed: int
    relation_names: tuple[str, ...]


def identity(settings: EmbeddingSettings, seed: int, fingerprint: str) -> dict[str, Any]:
    """Return what decides every bit of the result, as JSON has it."""
    return {"format": FORMAT, "triples": fingerprint, "seed": seed, "settings": settings.model_dump()}


def save_embeddings(folder: Path, embeddings: Embeddings, fingerprint: str) -> None:
    """Write the finished embeddings; the checkpoint goes when they are safe."""
    tables = {folder / "entities.npy": embeddings.entities, folder / "relations.npy": embeddings.relations}
    for path, table in tables.items():
        write_array(path, table)
    facts = identity(embeddings.settings, embeddings.seed, fingerprint)
    scores = asdict(embeddings.scores) if embeddings.scores else None
    facts |= {"relation_names": list(embeddings.relation_names), "scores": scores, "files": checksums_of(tables)}
    write_json(folder / "embeddings.json", facts)
    forget(folder / "checkpoint.npz")


def load_embeddings(folder: Path, *, memory_map: bool = False) -> Embeddings:
    """Read finished embeddings."""
    path = folder / "embeddings.json"
    facts = read_json(path)
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise FormatError(f"{folder} does not hold embeddings of format {FORMAT}.\nRestore them, or make them again.")
    try:
        check_files(folder, facts.get("files", {}))
        entities = read_array(folder / "entities.npy", memory_map=memory_map)
        relations, settings = read_array(folder / "relations.npy"), embedding_settings_from(facts["settings"])
        found = facts["scores"]
        scores = Scores(**{**found, "chance": Ranking(**found["chance"])}) if found else None
        return Embeddings(entities, relations, scores, settings, facts["seed"], tuple(facts["relation_names"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path} does not describe embeddings ({error}).\nRestore it, or make it again.") from error


def finished(folder: Path, facts: dict[str, Any]) -> Embeddings | None:
    """Return the embeddings that `facts` describe, if the folder holds them; refuse it if it holds others."""
    try:  # now, not after all the work
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise StorageError(f"The folder {folder} cannot be made: {why}.\nChoose another place for it.") from error
    if not (folder / "embeddings.json").is_file():
        return None
    refuse_others(folder, read_json(folder / "embeddings.json"), facts)
    return load_embeddings(folder)


def refuse_others(folder: Path, found: dict[str, Any], facts: dict[str, Any]) -> None:
    """Go on only with what was begun with the same triples, settings and seed."""
    names = {"format": "version of the format", "triples": "triples", "seed": "seed", "settings": "settings"}
    if others := [names[key] for key, value in facts.items() if found.get(key) != value]:
        raise SettingsError(f"{folder} holds embeddings of other {others[0]}.\nChoose another folder, or remove it.")


def save_checkpoint(folder: Path, arrays: dict[str, Array], step: int, facts: dict[str, Any]) -> None:
    """Replace the checkpoint; arrays are streamed, never copied."""
    header = np.frombuffer(json.dumps({"step": step, "facts": facts}).encode(), np.uint8)
    with replacing(folder / "checkpoint.npz") as file:
        np.savez(file, allow_pickle=False, header=header, **arrays)


def load_checkpoint(folder: Path, facts: dict[str, Any]) -> tuple[dict[str, Array], int] | None:
    """Return the arrays and the step to go on from, or None where nothing was begun."""
    path = folder / "checkpoint.npz"
    if not path.is_file():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(read_member(archive, "header").tobytes())
            refuse_others(folder, header["facts"], facts)
            names = (name.removesuffix(".npy") for name in archive.namelist())
            return {name: read_member(archive, name) for name in names if name != "header"}, header["step"]
    except (zipfile.BadZipFile, OSError, EOFError, KeyError, ValueError) as error:
        if isinstance(error, SettingsError):
            raise
        raise FormatError(f"{path} is not a complete checkpoint ({error}).\nRemove it to begin again.") from error


def read_member(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one array straight onto huge pages, where far-apart rows are reached faster."""
    with archive.open(f"{name}.npy") as file:
        check_header(file, archive.getinfo(f"{name}.npy").file_size)
        file.seek(0)
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        array = huge_pages.empty(shape, dtype)
        values, read = array.reshape(-1).view(np.uint8), 0
        while part := file.read(READ):
            values[read : read + len(part)] = np.frombuffer(part, np.uint8)
            read += len(part)
        if read < len(values):
            raise EOFError(f"{name} has {read:,} of {len(values):,} bytes")
    return array
