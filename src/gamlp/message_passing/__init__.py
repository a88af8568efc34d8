"""The methods GAMLP is compared with that pass messages in every step, through PyTorch Geometric (extra `pyg`).

settings   what can be set                                            (imports neither torch nor PyG)
sparse     a sparse matrix and its product with a quick gradient; dropout
features   scaling; features that are mostly zeros stay sparse
views      the whole graph or a part of it, as a network sees it, the adjacency normalised
sampled    whole graph, sampled neighbours, clusters, random parts and walks: what one epoch trains on
network    what makes a method: the base class of all networks
networks   those on plain graphs; adaptive AP-GCN; layerwise FastGCN and VR-GCN, adaptive_sampling AS-GCN
relational R-GCN and HGT, on heterogeneous graphs; relation_attention HGConv and R-HGNN, similar R-GSN
fit        train one method, keep the weights of its best validation score
method     the class behind all of them, as the pipeline knows it

A method is a class, and a row of `FAMILIES` in `gamlp/methods/registry.py` with its default settings.
"""
