"""The methods GAMLP is compared with that pass messages in every step, through PyTorch Geometric (extra `pyg`).

settings   what can be set, and what each method starts from          (imports neither torch nor PyG)
features   scaling; features that are mostly zeros stay sparse
matrices   how each method normalises the adjacency
views      the whole graph or a part of it, as a network sees it
partition  clusters of a graph, for Cluster-GCN
sampled    whole graph, sampled neighbours, clusters, random walks: what one epoch trains on
networks   the shallow networks      deep   the deep ones
relational R-GCN and HGT, on heterogeneous graphs
methods    one row a method: network, normalisation, sampling
parts      the network of a method and its view of one graph
fit        train one method, keep the weights of its best validation score
method     the class behind all of them, as the pipeline knows it
"""

from gamlp.message_passing.settings import names

__all__ = ["names"]
