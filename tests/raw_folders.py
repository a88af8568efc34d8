"""Data sets in miniature, as raw files in the layout of OGB."""

import gzip

import numpy as np

PAPERS, AUTHORS, FIELDS, INSTITUTIONS, CLASSES = 240, 60, 12, 6, 3


def put(file, array, fmt="%d"):
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = (",".join(fmt % value for value in row) for row in np.atleast_2d(array.T).T)
    file.write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))


def put_text(file, *lines):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def write_mag(root):
    """ogbn-mag: author a writes in venue a mod 3, and a paper's features say little."""
    folder, random = root / "ogbn_mag", np.random.default_rng(0)
    labels = np.arange(PAPERS) % CLASSES
    raw = folder / "raw"
    put_text(
        raw / "num-node-dict.csv.gz",
        "author,field_of_study,institution,paper",
        f"{AUTHORS},{FIELDS},{INSTITUTIONS},{PAPERS}",
    )
    same = {kind: [np.flatnonzero(np.arange(count) % CLASSES == c) for c in range(CLASSES)] for kind, count in
            (("author", AUTHORS), ("field", FIELDS), ("paper", PAPERS))}  # fmt: skip
    papers = np.arange(PAPERS)

    def partner(kind):
        return np.array([random.choice(same[kind][c]) for c in labels])

    relations = {
        ("author", "affiliated_with", "institution"): (np.arange(AUTHORS), np.arange(AUTHORS) % INSTITUTIONS),
        ("author", "writes", "paper"): (partner("author"), papers),
        ("paper", "cites", "paper"): (papers, partner("paper")),
        ("paper", "has_topic", "field_of_study"): (papers, partner("field")),
    }
    put_text(raw / "triplet-type-list.csv.gz", *(",".join(key) for key in relations))
    for key, ends in relations.items():
        put(raw / "relations" / "___".join(key) / "edge.csv.gz", np.stack(ends, axis=1))
    features = random.normal(size=(PAPERS, 8)) + 0.3 * np.eye(CLASSES, 8)[labels]
    put(raw / "node-feat" / "paper" / "node-feat.csv.gz", features, "%.4f")
    put(raw / "node-label" / "paper" / "node-label.csv.gz", labels)
    for part, ids in {"train": papers[:90], "valid": papers[90:150], "test": papers[150:]}.items():
        put(folder / "split" / "time" / "paper" / f"{part}.csv.gz", ids)


def write_ogb(root, name, split, *, nodes=240, features=8):
    """A homogeneous data set: edges mostly stay within a class, and features say little."""
    folder, random = root / name.replace("-", "_"), np.random.default_rng(1)
    labels = np.arange(nodes) % CLASSES
    source = random.integers(0, nodes, 4 * nodes)
    target = (
        source + CLASSES * random.integers(1, nodes // CLASSES, 4 * nodes) + (random.random(4 * nodes) < 0.2)
    ) % nodes
    put(folder / "raw/edge.csv.gz", np.stack([source, target], axis=1))
    put(
        folder / "raw/node-feat.csv.gz",
        random.normal(size=(nodes, features)) + np.eye(CLASSES, features)[labels],
        "%.4f",
    )
    put(folder / "raw/node-label.csv.gz", labels)
    put(folder / "raw/num-node-list.csv.gz", np.array([nodes]))
    put(folder / "raw/num-edge-list.csv.gz", np.array([len(source)]))
    for part, ids in zip(("train", "valid", "test"), np.array_split(random.permutation(nodes), 3), strict=True):
        put(folder / "split" / split / f"{part}.csv.gz", np.sort(ids))
