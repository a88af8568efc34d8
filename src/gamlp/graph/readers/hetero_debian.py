"""The built-in data set `debian-hetero`: the packages of `debian` with maintainers, source packages and tags.

The packages, their features, sections and split are those of `debian`; the other three types have no features. Six
relations: depends, recommends, suggests, maintained_by, built_from, has_tag (docs/debian.md).
"""

from __future__ import annotations

from gamlp.graph.build.hetero_assemble import RelationParts, TypeParts, assemble_hetero
from gamlp.graph.hetero import HeteroGraph
from gamlp.graph.readers.debian import load_debian, read_parts

TARGET = "package"


def load_debian_hetero() -> HeteroGraph:
    """Return the graph of packages, maintainers, sources and tags."""
    packages, parts = load_debian(), read_parts()
    types = {kind: TypeParts(len(names), names=names) for kind, names in parts.names.items()}
    types[TARGET] = TypeParts(
        packages.nodes, packages.features, packages.labels, packages.classes, packages.split, packages.names
    )
    relations = {name: RelationParts(TARGET, parts.ends[name], *ends) for name, ends in parts.relations.items()}
    return assemble_hetero(types, relations, target=TARGET, name="debian-hetero")
