"""The first hour of a person with data of their own: every step a command, and the time it took.

    python benchmarks/first_hour.py [--nodes 2000]

The data: people of six teams who write to each other, in two CSV files as a spreadsheet gives them, with names as ids,
a number with gaps, a category, a sentence, a date, and labels for a third. The steps go from the first look to new
people, a table without features, a mistake and its message, and a data frame in Python. Installing is not among them.
Results go to benchmarks/recorded/first_hour.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from messy_debian import write

RECORD = Path(__file__).parent / "recorded" / "first_hour.json"
TEAMS = ("sales", "law", "design", "code", "press", "lab")
CITIES = ("Oslo", "Bonn", "Rome", "")
PYTHON = """
import pandas, gamlp
edges, people = pandas.read_csv("edges.csv"), pandas.read_csv("people.csv")
graph = gamlp.read_graph([edges, people], label="team")
model = gamlp.GAMLPClassifier("gamlp-jk", epochs=20).fit(graph)
print(model.score(graph), model.predict(graph)[:3])
"""
GAMLP = [sys.executable, "-m", "gamlp"]
STEPS: dict[str, list[str]] = {
    "what is there": ["--help"],
    "train on my two files": ["train", "edges.csv", "people.csv", "--column", "label=team", "--out", "run"],
    "what every person got": ["predict", "run", "--out", "teams.csv"],
    "why did she": ["explain", "run", "--node", "person-7"],
    "the report": ["report", "run"],
    "is a simpler method as good": [
        *("compare", "edges.csv", "people.csv", "--column", "label=team", "--methods", "mlp,sgc,label-propagation"),
        *("--seeds", "1", "--out", "compared"),
    ],
    "people who are new": ["predict", "run", "edges-new.csv", "people-new.csv", "--out", "new.csv"],
    "the edges alone": [
        "train",
        "edges.csv",
        "teams-only.csv",
        "--column",
        "label=team",
        "--out",
        "bare",
        "--seeds",
        "1",
    ],
    "a mistake": ["train", "edges.csv", "broken.csv", "--column", "label=team"],
    "a directory that opens at once": ["import", "edges.csv", "people.csv", "--column", "label=team", "--out", "graph"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2000)
    arguments = parser.parse_args()
    rows = []
    with TemporaryDirectory() as folder:
        write_files(Path(folder), arguments.nodes)
        commands = {what: [*GAMLP, *words] for what, words in STEPS.items()}
        for what, command in {**commands, "from a data frame": [sys.executable, "-c", PYTHON]}.items():
            rows.append(timed(what, command, Path(folder)))
            print(json.dumps(rows[-1]), flush=True)
    RECORD.write_text(json.dumps(rows, indent=1) + "\n")


def timed(what: str, command: list[str], folder: Path) -> dict[str, object]:
    """Run one step; say how long it took, on the clock and on the processor."""
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = os.times()
    spent = [getattr(after, part) - getattr(before, part) for part in ("children_user", "children_system")]
    said = done.stdout if done.returncode == 0 else done.stderr
    words = said.replace(f"{folder}/", "").strip().splitlines()
    times = {"seconds": round(time.perf_counter() - began, 1), "processor_seconds": round(sum(spent), 1)}
    words = [line for line in words if line[:1].isalnum()]
    command_line = " ".join(["gamlp", *command[3:]]) if command[1] == "-m" else "python …"
    return {"step": what, "command": command_line, **times, "exit": done.returncode, "said": words[-3:]}


def write_files(folder: Path, nodes: int) -> None:
    """Write the files of all steps; a tenth of the people is new."""
    random = np.random.default_rng(0)
    team, old = np.arange(nodes) % len(TEAMS), nodes - nodes // 10
    start = np.repeat(np.arange(nodes), 5)
    same = random.integers(0, nodes // len(TEAMS), len(start)) * len(TEAMS) + team[start]
    end = np.where(random.random(len(start)) < 0.7, same, random.integers(0, nodes, len(start))) % nodes
    people = [person(at, TEAMS[team[at]], random) for at in range(nodes)]
    header = ["name", "team", "age", "city", "about", "joined"]
    links = [(f"person-{a}", f"person-{b}") for a, b in zip(start, end, strict=True)]
    known = [link for link, a, b in zip(links, start, end, strict=True) if a < old and b < old]
    write(folder / "people.csv", header, people[:old])
    write(folder / "edges.csv", ["from", "to"], known)
    write(folder / "people-new.csv", header, people)
    write(folder / "edges-new.csv", ["from", "to"], links)
    write(folder / "teams-only.csv", header[:2], [row[:2] for row in people[:old]])
    write(
        folder / "broken.csv", [*header, "pay"], [[*row, f"{(at + 1) * 1000:,}"] for at, row in enumerate(people[:old])]
    )


def person(at: int, team: str, random: np.random.Generator) -> list[object]:
    """Return one row; a third of the teams is known, and some fields are empty."""
    age = "" if random.random() < 0.1 else int(random.integers(20, 65))
    words = random.choice(["meets", "writes", "reads", "plans", "draws", team, "talks", "the", "old", "new"], 6)
    joined = "" if random.random() < 0.2 else f"20{random.integers(10, 25)}-{random.integers(1, 13):02}-01"
    return [f"person-{at}", team if random.random() < 0.33 else "", age, CITIES[at % 4], " ".join(words), joined]


if __name__ == "__main__":
    main()
