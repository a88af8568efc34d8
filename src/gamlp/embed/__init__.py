"""Embeddings for entities without features, learned from the triples (head, relation, tail) that they occur in.

triples = Triples(heads, relations, tails, entities=100_000, relation_names=("cites", "writes"))
embeddings = train_embeddings(triples, EmbeddingSettings(dimension=128), seed=0, folder=Path("embeddings"))
embeddings.entities        # (100000, 128) float32
embeddings.scores.mrr      # of held-out triples; embeddings.scores.chance.mrr is what guessing gives
"""

from gamlp.embed.ranking import Ranking, Scores
from gamlp.embed.result import Embeddings, load_embeddings
from gamlp.embed.settings import EmbeddingSettings, embedding_settings_from
from gamlp.embed.train import train_embeddings
from gamlp.embed.triples import Triples, load_triples, save_triples, triples_from

__all__ = [
    "EmbeddingSettings", "Embeddings", "Ranking", "Scores", "Triples", "embedding_settings_from", "load_embeddings",
    "load_triples", "save_triples", "train_embeddings", "triples_from",
]  # fmt: skip
