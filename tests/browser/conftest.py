"""One browser for all tests here; they are skipped where there is none."""

import sys
from pathlib import Path

import pytest
from chromium_pipe import Chromium, find_chromium

for room in ("explain", "serve"):  # for run_files and serving
    sys.path.insert(0, str(Path(__file__).parents[1] / room))


@pytest.fixture(scope="session")
def chromium():
    binary = find_chromium()
    if binary is None:
        pytest.skip("no Chromium on the PATH; name one in GAMLP_BROWSER")
    with Chromium(binary) as started:
        yield started


@pytest.fixture
def browser(chromium):
    """The browser at its start: nothing asked for, nothing complained about, light colours, a wide window."""
    chromium.looks()
    chromium.requests.clear()
    chromium.complaints.clear()
    return chromium
