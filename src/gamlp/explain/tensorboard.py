"""A run's curves for TensorBoard (extra `tensorboard`): one line a seed, epochs counted over all stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gamlp.errors import MissingExtraError
from gamlp.explain.figures.learning import ACCURACY, LOSS, VALID_LOSS, series
from gamlp.explain.run_summary import summaries_of
from gamlp.storage.files import read_json

KEYS = {"loss/train": LOSS, "loss/valid": VALID_LOSS, "accuracy/valid": ACCURACY}


def write_curves(folders: list[Path], out: Path) -> list[Path]:
    """Write event files below `out`, a folder for each run and seed; return these folders."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise MissingExtraError("tensorboard", "Writing curves for TensorBoard") from error
    opened: Any = SummaryWriter  # its types differ with what else is installed
    made = []
    for entry in summaries_of(folders):
        for one in entry.result["runs"]:
            history = read_json(entry.folder / f"seed-{one['seed']}" / "history.json")
            place = out / entry.folder.resolve().name / f"seed-{one['seed']}"
            with opened(log_dir=str(place)) as writer:
                for name, keys in KEYS.items():
                    for epoch, value in series(history, *keys):
                        writer.add_scalar(name, value, int(epoch))
                if one["test_accuracy"] is not None:
                    writer.add_scalar("accuracy/test", one["test_accuracy"], 0)
            made.append(place)
    return made
