"""Predictions of many rows within a memory limit: group of rows by group of rows, a part of a group at a time.

Only the nodes that may become reliable are needed in all stages but the last; their hops and logits come first. The
last network then reads the hops of one group after the other from the disk, and each part of its predictions is gone
when the next one comes. A group is as large as the disk allows, as every group costs a propagation of its own:

    disk    (K+1)·F·b bytes a row of a group, of S relation subsets S+1 times: one is joined beside the others;
            2·C·b for the last label hop, joined from its blocks, or as often as there are label hops to be added up.
            Half of what is free is used.
    memory  4·C bytes a row, several times over, where label hops are dealt or added up; 4·F for X^(∞)
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gamlp.errors import SettingsError
from gamlp.model.registry import combiner_named
from gamlp.progress import progress
from gamlp.storage.scratch import sweep_scratch
from gamlp.storage.sizes import format_size
from gamlp.storage.threads import ranges
from gamlp.train.inputs import embed, predict
from gamlp.train.prediction import Prediction
from gamlp.train.stage import StageData
from gamlp.train.stages import data_of_last, stage_inputs

if TYPE_CHECKING:
    from gamlp.graph.graph import Graph
    from gamlp.methods.hop_network import FittedHopNetwork
    from gamlp.storage.files import Array

ROWS_A_PART = 2**17  # at most: as many as a row group of Parquet has
COPIES = 4  # of logits and probabilities while a part is made, or all candidates


def needs_groups(memory: int | None, rows: int, classes: int) -> bool:
    """Say whether the predictions of so many rows are too large to be held at once."""
    return memory is not None and rows > ROWS_A_PART and COPIES * 4 * rows * classes > memory // 4


def predict_groups(
    fitted: FittedHopNetwork, graph: Graph, known: StageData, rows: Array, *, embeddings: bool = False
) -> Iterator[Prediction]:
    """Yield what the last network says of `rows`, ascending, a part at a time."""
    classes, engine = fitted.context.classes, fitted.context.source.engine
    fitted.context.source.features(graph, fitted.settings)  # once: all groups take them up
    data = known._replace(teacher=np.zeros((0, classes), np.float32))
    if len(fitted.networks) > 1:
        check_candidates(len(known.candidates), classes, engine.room)
        task = fitted.task(graph, known.candidates, keep=engine.cache is not None)
        data = data_of_last(task, known, fitted.networks)
        del task  # and its hops, where no cache has them: the disk is for the groups
    groups = ranges(len(rows), rows_a_group(fitted, engine.room))
    part = rows_a_part(classes, engine.room)
    with progress("predict", total=len(rows)) as advance:
        for first, end in groups:
            for said in predict_group(fitted, graph, data, rows[first:end], part=part, embeddings=embeddings):
                yield said
                advance(len(said.rows))


def predict_group(
    fitted: FittedHopNetwork, graph: Graph, data: StageData, rows: Array, *, part: int, embeddings: bool
) -> Iterator[Prediction]:
    """Yield what the last network says of one group; its hops are gone when this ends, before others are made."""
    network, last, kind = fitted.networks[-1], len(fitted.networks) - 1, data.objective.kind
    task = fitted.task(graph, rows, keep=False)
    inputs = stage_inputs(task, data, last)
    for begin, stop in ranges(len(rows), part):
        ids = task.rows[begin:stop]
        said = Prediction.of(np.array(ids), *predict(network, inputs, ids), kind)  # a copy: ids are of the hops' files
        yield replace(said, embeddings=embed(network, inputs, ids)) if embeddings else said


def rows_a_part(classes: int, room: int | None) -> int:
    """Return how many rows' predictions an eighth of the memory that is left holds."""
    return ROWS_A_PART if room is None else max(1, min(ROWS_A_PART, room // 8 // (COPIES * 4 * classes)))


def check_candidates(count: int, classes: int, room: int | None) -> None:
    """Refuse to hold the predictions of more candidates than fit."""
    needed = COPIES * 4 * count * classes
    if room is not None and needed > room:
        raise SettingsError(
            f"{count:,} nodes may become reliable labels of the next stage, and their predictions need "
            f"{format_size(needed)}; {format_size(room)} are left.\n"
            "Give more --memory, fewer rows, or train with --set reliable_from=split."
        )


def rows_a_group(fitted: FittedHopNetwork, room: int | None) -> int:
    """Return how many rows' hops half of the free disk holds, and the memory what is made of them beside."""
    settings, classes, width = fitted.settings, fitted.context.classes, fitted.networks[-1].features
    hops = (settings.hops + 1) * width * (len(fitted.subsets) + 1 if fitted.subsets else 1)
    added_up = settings.label_weights != "last"
    labels = 2 * classes * (settings.label_hops + 1 if added_up else 1) if settings.labels else 0
    row = (hops + labels) * np.dtype(settings.storage).itemsize
    held = 4 * width if combiner_named(settings.combiner).needs_stationary else 0
    if settings.labels and (added_up or settings.label_folds > 1):
        held += COPIES * 4 * classes
    count = shutil.disk_usage(sweep_scratch("gamlp-hops").parent).free // 2 // row
    if room is not None and held:
        count = min(count, room // 4 // held)
    return max(ROWS_A_PART, int(count) // ROWS_A_PART * ROWS_A_PART)
