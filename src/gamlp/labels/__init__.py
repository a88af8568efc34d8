"""Labels as input, as teachers and as corrections; what is heavy is imported when it is first asked for.

    initial_labels   which labels go in            reliable_set, soften   which predictions can be trusted
    label_hops       labels propagated             distillation_loss      the last stage as a teacher
    label_propagation, correct_and_smooth          labels without, or after, a network
    AveragedTeacher, consistency_loss              SCR          enlarged_training_set, reuse_labels   SLE, label reuse

Every label that a function reads is an argument with its ids beside it: what is not handed over cannot leak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamlp.lazy import lazy_imports

if TYPE_CHECKING:
    from gamlp.labels.choose import choose_correct_and_smooth
    from gamlp.labels.consistency import AveragedTeacher, consistency_loss, ramp_up, sharpen
    from gamlp.labels.correction import CorrectAndSmooth, Correction, Smoothing, correct_and_smooth, label_propagation
    from gamlp.labels.distillation import distillation_loss, kl_divergence, squared_difference
    from gamlp.labels.hops import initial_labels, label_hops
    from gamlp.labels.reliable import enlarged_training_set, is_reliable, reliable_set, soften
    from gamlp.labels.reuse import reuse_labels

__all__ = [
    "AveragedTeacher", "CorrectAndSmooth", "Correction", "Smoothing", "choose_correct_and_smooth", "consistency_loss",
    "correct_and_smooth", "distillation_loss", "enlarged_training_set", "initial_labels", "is_reliable",
    "kl_divergence", "label_hops", "label_propagation", "ramp_up", "reliable_set", "reuse_labels", "sharpen", "soften",
    "squared_difference",
]  # fmt: skip

__getattr__ = lazy_imports(__name__)
