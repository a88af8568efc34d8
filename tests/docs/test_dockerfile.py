"""The steps of the Dockerfile in docs/operations.md, in an empty environment; packages come from this one."""

import json
import os
import re
import shlex
import subprocess
import sys

import pytest
from pages import ROOT

PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^(FROM|COPY|RUN|ENV|WORKDIR|ENTRYPOINT) (.+)$", PAGE, re.MULTILINE)


def test_the_base_has_a_python_that_is_enough():
    needed = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    image = re.fullmatch(r"python:(\d+)\.(\d+)-slim", dict(STEPS)["FROM"])
    assert tuple(map(int, image.groups())) >= tuple(map(int, needed.groups()))


@pytest.mark.slow
def test_the_steps_run_in_an_empty_environment(tmp_path):
    """What would be fetched is lent by this environment: pip installs the package itself and nothing else."""
    lent = [path for path in sys.path if path.endswith("site-packages")]
    here = {"/opt/gamlp": str(tmp_path / "opt"), "/src": str(ROOT), "/data": str(tmp_path)}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(lent)}
    for step, words in STEPS:
        for place, real in here.items():
            words = words.replace(place, real)  # noqa: PLW2901
        if step == "ENV":
            name, _, value = words.partition("=")
            environment[name] = value.replace("$PATH", environment["PATH"])
        elif step == "RUN":
            command = shlex.split(words)
            if command[1:2] == ["install"]:
                assert (ROOT / "constraints.txt").is_file()
                command += ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
            command[0] = sys.executable if command[0] == "python" else command[0]
            subprocess.run(command, check=True, env=environment, cwd=tmp_path, capture_output=True)
        elif step == "ENTRYPOINT":
            entry = json.loads(words)
    place = tmp_path / "opt" / "bin" / entry[0]
    assert place.is_file()
    said = subprocess.run([place, "--version"], check=True, env=environment, capture_output=True, text=True)
    assert said.stdout.startswith("gamlp ")
    package = "import gamlp; print(gamlp.__file__)"
    found = subprocess.run(
        [tmp_path / "opt" / "bin" / "python", "-c", package],
        check=True, cwd=tmp_path, env={**environment, "PYTHONPATH": ""}, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout.startswith(str(tmp_path / "opt"))  # the one that was installed, not this one
