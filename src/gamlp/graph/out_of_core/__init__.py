"""Graphs larger than memory: edges in any number, in any order → a graph directory, within a given amount of memory.

    edges     a stream of (source, target, weight): from files (`sources`), or drawn (`gamlp.synth`)
    groups    as many edges as fit are put into buckets of neighbouring rows and written: one sorted run (`groups`)
    ranges    as many buckets as fit are gathered from all runs, sorted, merged and appended to the adjacency (`ranges`)
    nodes     features, labels, split and names, a batch at a time (`nodes`)
    directory graph.json, written last (`directory`)

Every group and every range is kept when it is finished: whoever is killed goes on there.
"""
