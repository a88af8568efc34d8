"""Attention in two steps, over the neighbours in each relation and over the relations: HGConv and R-HGNN.

Both have `heads` heads of width `hidden`, side by side; a·[x ‖ y] is for each head. For a node v of type t and a
relation r from type s, with softmax of LeakyReLU throughout and gates σ(λ) that each type learns:

HGConv (Yu et al. 2020, hybrid micro/macro level convolution)

    micro  z_rv = relu(Σ_u softmax_u(a_s·[W_t h_v ‖ W_s h_u]) W_s h_u)
    macro  m_v = Σ_r softmax_r(c·[U_t h_v ‖ M_r z_rv]) M_r z_rv
    h'_v = σ(λ_t) m_v + (1 − σ(λ_t)) (V_t h_v + b_t)

R-HGNN (Yu et al. 2021, relation awareness) keeps a row h_rv for every relation r into v, and a row e_r of r itself

    within  z_rv = relu(Σ_u softmax_u((Q_r e_r)·[W_t h_rv ‖ W_s h_r̄u]) W_s h_r̄u),   r̄ the reverse of r
            y_rv = σ(λ_t) z_rv + (1 − σ(λ_t)) (V_t h_rv + b_t)
    across  h'_rv = LayerNorm_t(Σ_r' softmax_r'(c_r·y_r'v) y_r'v),   e'_r = P_r e_r + p_r
    fused   h_v = Σ_r softmax_r((E_r e_r)·(F_r h_rv)) F_r h_rv, after the last layer

Features come in by a linear map of each type, logits go out by one of the target type. e_r has the width of a head;
dropout falls on what a layer reads. Both train as HGT does. One layer costs O(edges·heads·hidden).
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import leaky_relu, pad

from gamlp.errors import InputError
from gamlp.message_passing.pyg import scatter, softmax
from gamlp.message_passing.relational import Kind, TypedNetwork, TypedView, subgraphs
from gamlp.message_passing.settings import Options

Rows = dict[str, torch.Tensor]  # of each type
SLOPE = 0.2


class OverRelations(TypedNetwork):
    """What these networks and R-GSN share; `kinds` are the types with relations, the target type first."""

    sampler = subgraphs

    def __init__(self, view: TypedView, options: Options) -> None:
        super().__init__(options)
        self.kinds = [kind for kind in view.ranges if any(kind == target for _, _, target in view.edges)]
        if next(iter(view.ranges)) not in self.kinds:
            raise InputError(
                f"No relation has an end of type '{next(iter(view.ranges))}', whose nodes have the labels.\n"
                "The method learns from relations alone: add one, or use a method on the features, such as mlp."
            )

    def features(self, view: TypedView) -> Rows:
        """Return the features of the types that count."""
        return {kind: view.features[slice(*view.ranges[kind])] for kind in self.kinds}

    def padded(self, logits: torch.Tensor, view: TypedView) -> torch.Tensor:
        """Return the logits of the target type, zeros for all other nodes."""
        return pad(logits, (0, 0, 0, len(view.features) - len(logits)))


class Layer(nn.Module):
    """What a layer of both has: maps W_t, and the gated way past it."""

    def __init__(self, kinds: list[str], relations: int, options: Options) -> None:
        super().__init__()
        self.shape, width = (options.heads, options.hidden), options.heads * options.hidden
        self.place = {kind: number for number, kind in enumerate(kinds)}
        self.maps = stacked(len(kinds), width, width)
        self.past = nn.ModuleList(nn.Linear(width, width) for _ in kinds)
        self.gates = nn.Parameter(torch.zeros(len(kinds)))

    def mapped(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Multiply and cut into heads.  (n, width) → (n, heads, hidden)."""
        return (rows @ weight).view(-1, *self.shape)

    def gated(self, new: torch.Tensor, rows: torch.Tensor, kind: str) -> torch.Tensor:
        """Return σ(λ) new + (1 − σ(λ)) (V rows + b)."""
        place = self.place[kind]
        return torch.lerp(self.past[place](rows), new, self.gates[place].sigmoid())


class Headed(OverRelations):
    """A linear map of each type in front of layers of several heads, and one after them."""

    layer: type[Layer]

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__(view, options)
        width = options.heads * options.hidden
        self.entry = nn.ModuleList(nn.Linear(view.features.shape[1], width) for _ in self.kinds)
        self.layers = nn.ModuleList(self.layer(self.kinds, len(view.edges), options) for _ in range(options.layers))
        self.last = nn.Linear(width, classes)

    def entered(self, view: TypedView) -> Rows:
        """Return the features of each type in the common width."""
        return {kind: enter(self.features(view)[kind]) for kind, enter in zip(self.kinds, self.entry, strict=True)}


class HybridLayer(Layer):
    """One layer of HGConv."""

    def __init__(self, kinds: list[str], relations: int, options: Options) -> None:
        super().__init__(kinds, relations, options)
        width = options.heads * options.hidden
        self.near = stacked(len(kinds), options.heads, 2 * options.hidden)
        self.own, self.transform = stacked(len(kinds), width, width), stacked(relations, width, width)
        self.macro = stacked(1, options.heads, 2 * options.hidden)

    def forward(self, rows: Rows, view: TypedView) -> Rows:
        """Rows of each type (n, width) → the same."""
        mapped = {kind: self.mapped(each, self.maps[self.place[kind]]) for kind, each in rows.items()}
        found: dict[str, list[torch.Tensor]] = {kind: [] for kind in rows}
        for number, ((source, _, target), pairs) in enumerate(view.local.items()):
            near = over_neighbours(mapped[target], mapped[source], self.near[self.place[source]], pairs)
            found[target].append(self.mapped(near.flatten(1), self.transform[number]))
        merged = {}
        for kind, each in rows.items():
            own, relations = self.mapped(each, self.own[self.place[kind]]), torch.stack(found[kind])
            toward, away = self.macro[0].chunk(2, dim=1)
            merged[kind] = weighed(scored(own, toward) + scored(relations, away), relations).flatten(1)
        return {kind: self.gated(merged[kind], rows[kind], kind) for kind in rows}


class HGConv(Headed):
    """Hybrid micro/macro level convolution."""

    layer = HybridLayer

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C), zeros for nodes of other types than the target."""
        rows = self.entered(view)
        for layer in self.layers:
            rows = layer({kind: self.drop(each) for kind, each in rows.items()}, view)
        return self.padded(self.last(self.drop(rows[self.kinds[0]])), view)


Aware = dict[Kind, torch.Tensor]  # for each relation, rows of the nodes that it leads to


class AwareLayer(Layer):
    """One layer of R-HGNN."""

    def __init__(self, kinds: list[str], relations: int, options: Options) -> None:
        super().__init__(kinds, relations, options)
        hidden, heads = options.hidden, options.heads
        self.query = stacked(relations, hidden, heads * 2 * hidden)
        self.cross = stacked(relations, heads, hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(heads * hidden) for _ in kinds)
        self.onward = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(relations))

    def forward(self, rows: Aware, relations: torch.Tensor, view: TypedView) -> tuple[Aware, torch.Tensor]:
        """Rows (n, width) of the nodes each relation leads to, and of the relations (R, hidden) → the same."""
        mapped = {key: self.mapped(each, self.maps[self.place[key[2]]]) for key, each in rows.items()}
        passed, keys = {}, list(rows)  # every second relation is the reverse of the one before
        for number, (key, pairs) in enumerate(view.local.items()):
            query = (relations[number] @ self.query[number]).view(self.shape[0], -1)
            near = over_neighbours(mapped[key], mapped[keys[number ^ 1]], query, pairs)
            passed[key] = self.gated(near.flatten(1), rows[key], key[2])
        crossed = {}
        for number, key in enumerate(rows):
            beside = torch.stack([each for other, each in passed.items() if other[2] == key[2]])
            beside = beside.view(*beside.shape[:2], *self.shape)
            merged = weighed(scored(beside, self.cross[number]), beside).flatten(1)
            crossed[key] = self.norms[self.place[key[2]]](merged)
        return crossed, torch.stack([onward(each) for onward, each in zip(self.onward, relations, strict=True)])


class RHGNN(Headed):
    """A heterogeneous graph network that is aware of relations."""

    layer = AwareLayer

    def __init__(self, view: TypedView, classes: int, options: Options) -> None:
        super().__init__(view, classes, options)
        hidden, into = options.hidden, [key for key in view.edges if key[2] == self.kinds[0]]
        self.relations = stacked(1, len(view.edges), hidden)
        self.fuse = nn.Parameter(torch.stack([stacked(options.heads, hidden, hidden).data for _ in into]))
        self.queries = stacked(len(into), hidden, options.heads * hidden)

    def forward(self, view: TypedView) -> torch.Tensor:
        """View of N nodes → (N, C), zeros for nodes of other types than the target."""
        entered, relations = self.entered(view), self.relations[0]
        rows = {key: entered[key[2]] for key in view.edges}
        for layer in self.layers:
            rows, relations = layer({key: self.drop(each) for key, each in rows.items()}, relations, view)
        return self.padded(self.last(self.drop(self.fused(rows, relations))), view)

    def fused(self, rows: Aware, relations: torch.Tensor) -> torch.Tensor:
        """Return one row of each target node, (n, width)."""
        places = [place for place, key in enumerate(rows) if key[2] == self.kinds[0]]
        into = torch.stack([each for key, each in rows.items() if key[2] == self.kinds[0]])
        heads = into.view(*into.shape[:2], self.options.heads, -1)
        mapped = torch.einsum("rnhd,rhde->rnhe", heads, self.fuse)
        queries = torch.einsum("rd,rde->re", relations[places], self.queries).view(len(places), 1, heads.shape[2], -1)
        return weighed(scored(mapped, queries), mapped).flatten(1)


def over_neighbours(
    targets: torch.Tensor, sources: torch.Tensor, vector: torch.Tensor, pairs: torch.Tensor
) -> torch.Tensor:
    """Return relu(Σ_u softmax_u(LeakyReLU(a·[t ‖ s_u])) s_u).  Rows (n, heads, hidden), vector (heads, 2·hidden)."""
    toward, away = vector.chunk(2, dim=1)
    scores = scored(targets, toward)[pairs[1]] + scored(sources, away)[pairs[0]]
    return attended(leaky_relu(scores, SLOPE), sources, pairs, len(targets)).relu()


def attended(scores: torch.Tensor, rows: torch.Tensor, pairs: torch.Tensor, count: int) -> torch.Tensor:
    """Return Σ_u softmax_u(score) row_u.  scores (E, heads), rows (n, heads, d), pairs (2, E) → (count, heads, d)."""
    shares = softmax(scores, pairs[1], num_nodes=count)
    return scatter(shares[:, :, None] * rows[pairs[0]], pairs[1], dim_size=count)  # type: ignore[no-any-return]


def scored(rows: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """Return the product of each head with its part of a vector.  (…, heads, d), (heads, d) → (…, heads)."""
    return (rows * vector).sum(dim=-1)


def weighed(scores: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return Σ_r softmax_r(LeakyReLU(score_r)) row_r.  (R, n, heads), (R, n, heads, d) → (n, heads, d)."""
    return (leaky_relu(scores, SLOPE).softmax(dim=0)[..., None] * rows).sum(dim=0)


def stacked(count: int, inputs: int, outputs: int) -> nn.Parameter:
    """Return `count` matrices to be learned, each drawn as Glorot and Bengio do."""
    return nn.Parameter(torch.stack([nn.init.xavier_uniform_(torch.empty(inputs, outputs)) for _ in range(count)]))
