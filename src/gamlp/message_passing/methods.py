"""One row a method: its network, how the adjacency is normalised for it, and what an epoch trains on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from gamlp.message_passing import deep, matrices, networks, sampled
from gamlp.message_passing.matrices import Matrix
from gamlp.message_passing.sampled import Sampler, Source
from gamlp.message_passing.settings import Options
from gamlp.message_passing.views import Sizes


@dataclass(frozen=True)
class Method:
    """What makes a method: everything else is shared."""

    network: Callable[[Sizes, Options], nn.Module]
    normalize: Callable[[Matrix], Matrix]
    sampler: Callable[[Source], Sampler] = sampled.whole
    takes_labels: bool = False
    """Whether some training labels are input, and the loss falls on the others."""


METHODS = {
    "gcn": Method(networks.GCN, matrices.symmetric),
    "gat": Method(networks.GAT, matrices.looped),
    "graphsage": Method(networks.Neighbour, matrices.mean, sampled.neighbours),
    "appnp": Method(networks.APPNP, matrices.symmetric),
    "jknet": Method(deep.JKNet, matrices.symmetric),
    "resgcn": Method(deep.ResGCN, matrices.symmetric),
    "deepergcn": Method(deep.DeeperGCN, matrices.looped),
    "unimp": Method(networks.UniMP, matrices.looped, takes_labels=True),
    "dagnn": Method(deep.DAGNN, matrices.symmetric),
    "cluster-gcn": Method(networks.Neighbour, matrices.enhanced, sampled.clustered),
    "graphsaint": Method(networks.Neighbour, matrices.mean, sampled.walks),
}
