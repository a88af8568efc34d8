"""What is told on the way: one line at the start, plain lines of progress where there is no terminal, a log file."""

import logging

import pytest

from gamlp.cli.screen import duration, lines, talking, together
from gamlp.progress import log, progress, report_to


@pytest.fixture
def told():
    """All records of the logger, as (level, text)."""
    found = []

    class Kept(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    handler, before = Kept(), log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield found
    log.removeHandler(handler)
    log.setLevel(before)
    report_to(None)


def test_a_line_now_and_then_with_the_time_left(told):
    now = [0.0]
    report_to(together([lines(30, clock=lambda: now[0])]))
    with progress("seeds", total=3) as seeds:
        seeds(1)
        with progress("stage 1", total=100) as stage:
            for second in range(1, 41):  # an epoch a second
                now[0] = second
                stage(1, note=f"valid {second} %")
    assert told == [
        "seeds 1 of 3 · stage 1 10 of 100, valid 10 %, about 2 min left",  # 90 s
        "seeds 1 of 3 · stage 1 40 of 100, valid 40 %, about 1 min left",
    ]


def test_several_reporters_hear_the_same(told):
    now = [0.0]
    report_to(together([lines(1, clock=lambda: now[0]), lines(1, clock=lambda: now[0])]))
    with progress("read") as advance:
        now[0] = 5.0
        advance(7)
    assert told == ["read 7", "read 7"]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59, "59 s"), (90, "2 min"), (3600, "1.0 h"), (200_000, "2.3 days")]
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_more_less_and_a_file(tmp_path, capsys):
    def tell():
        log.info("detail")
        log.warning("mind this")

    for options, shown in (
        ({}, "Note: mind this\n"),
        ({"quiet": True}, ""),
        ({"verbose": True}, "detail\nNote: mind this\n"),
    ):
        with talking(**options, file=tmp_path / "log.txt"):
            tell()
        assert capsys.readouterr().err == shown
    written = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in written] == ["INFO detail", "WARNING mind this"] * 3
    assert not [one for one in log.handlers if not isinstance(one, logging.NullHandler)]


def test_the_first_line_says_what_was_read_chosen_and_how_long(gamlp, files, quick, tmp_path):
    done = gamlp(
        "train", files.edges, files.nodes, "--seeds", 1, "--out", tmp_path / "run", *quick, "--log", tmp_path / "log"
    )
    assert done.code == 0, done.err
    line = next(line for line in done.err.splitlines() if not line.startswith("Note"))
    assert "edges: 90 nodes, " in line
    assert "train, " in line
    assert "labels of 3 classes; 1 seed, up to about " in line
    assert line in (tmp_path / "log").read_text()
    again = gamlp("train", "--resume", tmp_path / "run", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert gamlp("train", "--resume", tmp_path / "run", "--quiet", "--verbose").code == 2
