"""Everything that can be set about embeddings, in one frozen object.

The published settings for ogbn-mag: dimension 256, 200 self-adversarial negatives, margin 10, learning rate 0.1,
batches of 1,000, 500,000 steps. The defaults here are shorter, for graphs of about 100,000 entities.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gamlp.errors import SettingsError
from gamlp.settings import checked

Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class EmbeddingSettings(BaseModel):
    """How embeddings are learned."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Literal["complex", "transe"] = "complex"
    dimension: Count = 256
    """Numbers per entity; ComplEx takes half of them as real, half as imaginary parts."""
    negatives: Count = 200
    """False triples that each true one is compared with."""
    chunk: Count = 200
    """Triples that share their negatives, so that their scores are one matrix product."""
    temperature: Amount = 1.0
    """Of the self-adversarial weights: the higher, the more the hardest negatives count; 0 = all alike."""
    margin: Positive = 10.0
    """TransE: the score at distance 0. Both models: the larger, the wider the entities are spread at first."""
    learning_rate: Positive = 0.1
    regularization: Amount = 1e-6
    """Weight of Σ|x|³ over the embeddings of each true triple."""
    batch_size: Count = 1000
    """Triples in one step, rounded down to whole chunks."""
    steps: Count = 3000
    held_out: Annotated[int, Field(ge=0)] = 1000
    """Triples held out of training and ranked at the end; never more than a twentieth of all."""


def embedding_settings_from(values: dict[str, Any]) -> EmbeddingSettings:
    """Check `values`; an unknown key or an impossible value is one clear SettingsError."""
    return check_settings(checked(EmbeddingSettings, values, of="gamlp embed"))


def check_settings(settings: EmbeddingSettings) -> EmbeddingSettings:
    """Refuse values that do not go together."""
    if settings.model == "complex" and settings.dimension % 2:
        raise SettingsError(
            f"Setting dimension = {settings.dimension} is odd.\n"
            "ComplEx needs as many real as imaginary parts: choose an even number."
        )
    return settings
