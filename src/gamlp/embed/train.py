"""Learn embeddings from triples, step by step; a kill loses the last seconds only, and changes no bit of the result.

Memory: N·(d + 1) float32 for the table and its sums, N bytes to find known answers, and a step; triples are read where
they are. Batches are functions of (seed, step), so a checkpoint is the tables and the step.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gamlp.embed import result
from gamlp.embed.batches import plan_for
from gamlp.embed.ranking import evaluate, hold_out
from gamlp.embed.result import Embeddings
from gamlp.embed.scoring import scoring_for
from gamlp.embed.settings import EmbeddingSettings, check_settings
from gamlp.embed.step import Tables, take_step
from gamlp.embed.triples import Triples
from gamlp.progress import progress
from gamlp.storage import huge_pages
from gamlp.storage.files import Array
from gamlp.storage.locks import locked

REPORT_EVERY = 50  # steps
SAVE_EVERY = 20.0  # seconds, or ten times as long as a save takes


def train_embeddings(
    triples: Triples, settings: EmbeddingSettings | None = None, *, seed: int, folder: Path | None = None
) -> Embeddings:
    """Learn a row for each entity and relation.

    With a folder, checkpoints and the result are stored there: called again with the same triples, settings and seed,
    it goes on where it was stopped, or returns what is finished.
    """
    settings = check_settings(settings or EmbeddingSettings())
    triples.check()
    with locked(folder) if folder else nullcontext():
        fingerprint = triples.fingerprint() if folder else ""
        facts = result.identity(settings, seed, fingerprint)
        if folder and (found := result.finished(folder, facts)):
            return found
        held_out = hold_out(triples, settings.held_out, seed=seed)
        tables = start_or_resume(triples, settings, seed, folder, facts)
        run(triples, settings, seed, tables, held_out.rows, folder, facts)
        scores = evaluate(scoring_for(settings), tables.entities, tables.relations, held_out)
        learned = tables.entities.numpy(), tables.relations.numpy()
        embeddings = Embeddings(*learned, scores, settings, seed, triples.relation_names)
        if folder:
            result.save_embeddings(folder, embeddings, fingerprint)
        return embeddings


def start_or_resume(
    triples: Triples, settings: EmbeddingSettings, seed: int, folder: Path | None, facts: dict[str, Any]
) -> Tables:
    """Read the checkpoint, or spread the rows evenly over ±(margin + 2) / d."""
    if folder and (checkpoint := result.load_checkpoint(folder, facts)):
        arrays, step = checkpoint
        return Tables(**{name: torch.from_numpy(array) for name, array in arrays.items()}, step=step)
    random = torch.Generator().manual_seed(seed)
    spread = (settings.margin + 2) / settings.dimension
    counts = triples.entities, len(triples.relation_names)
    empty = [torch.from_numpy(huge_pages.empty((count, settings.dimension), np.float32)) for count in counts]
    entities, relations = (rows.uniform_(-spread, spread, generator=random) for rows in empty)
    return Tables(entities, relations, torch.zeros(len(entities)), torch.zeros(len(relations)))


def run(
    triples: Triples, settings: EmbeddingSettings, seed: int, tables: Tables, left_out: Array, folder: Path | None,
    facts: dict[str, Any],
) -> None:  # fmt: skip
    """Take all steps that are left, on all rows but `left_out` (sorted)."""
    plan = plan_for(settings, rows=len(triples) - len(left_out), entities=triples.entities, seed=seed)
    scoring = scoring_for(settings)
    gaps = left_out - np.arange(len(left_out))  # training triple j is row j + #(gaps ≤ j)
    saved, pause = time.monotonic(), SAVE_EVERY
    with progress("embed", total=settings.steps) as advance:
        advance(tables.step)
        while tables.step < settings.steps:
            places = plan.places(tables.step)
            rows = places + np.searchsorted(gaps, places, side="right")
            report = tables.step % REPORT_EVERY == 0
            value = take_step(tables, triples.rows(rows), plan, scoring, settings, measured=report)
            tables.step += 1
            advance(note=f"loss {value:.3f}" if report else "")
            if folder and time.monotonic() - saved > pause:
                begun = time.monotonic()
                result.save_checkpoint(folder, tables.arrays(), tables.step, facts)
                saved = time.monotonic()
                pause = max(SAVE_EVERY, 10 * (saved - begun))
