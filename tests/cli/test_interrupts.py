"""A command that is told to stop does stop, whatever becomes of the KeyboardInterrupt that a signal raises."""

import os
import signal
import sys
import time

import pytest

from gamlp.cli import main
from gamlp.cli.interrupts import SIGNALS, interrupts, listening

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


@pytest.fixture(autouse=True)
def heard():
    """Let Ctrl-C be heard: a test run in the background may have been begun with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def end(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_keyboard_interrupt_while_the_block_runs_and_what_it_was_afterwards(number):
    as_it_was, before = signal.getsignal(number), signal.default_int_handler
    signal.signal(number, before)  # not ignored, as nohup has SIGHUP
    with pytest.raises(KeyboardInterrupt), listening():
        assert not interrupts.asked
        end(number)
        time.sleep(5)
    assert interrupts.asked
    assert signal.getsignal(number) == before
    signal.signal(number, as_it_was)


class Dropping:
    """Runs until its destructor was told to stop: Python drops what is raised there."""

    def __del__(self):
        end()
        for _ in range(10**6):
            pass


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_what_is_dropped_in_a_destructor_is_raised_again(handler):
    signal.signal(signal.SIGINT, handler)
    with pytest.raises(KeyboardInterrupt), listening():
        Dropping()
        time.sleep(5)


def test_another_error_in_a_destructor_is_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)

    class Failing:
        def __del__(self):
            raise ValueError("in a destructor")

    with listening():
        Failing()
    assert [one.exc_type for one in told] == [ValueError]
    assert sys.unraisablehook == told.append


def test_an_ignored_ctrl_c_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with listening():
        end(signal.SIGINT)
    assert not interrupts.asked


def test_what_a_library_makes_of_the_signal_is_not_an_error_of_the_command(monkeypatch, capsys):
    """A plotting library in C answers the exception with a ValueError of its own: still interrupted, code 130."""

    def plot(*_, **__):
        try:
            end(signal.SIGINT)
            time.sleep(5)
        except KeyboardInterrupt:
            raise ValueError("Invalid affine transformation matrix") from None

    monkeypatch.setattr("gamlp.graph.readers.datasets.describe_datasets", plot)
    with pytest.raises(SystemExit) as left:
        main(["datasets"])
    assert left.value.code == 130
    assert "Interrupted." in capsys.readouterr().err
