"""Generated graphs of any size: planted classes, skewed degrees, communities, features with a faint signal.

shapes    the sizes and habits of known data sets: products, papers100M, mag
draw      nodes and edges as functions of (seed, number): drawn in any order and in batches, always the same
write     straight to a graph directory, within a given amount of memory
"""
