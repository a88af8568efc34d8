import sys
from pathlib import Path

from gamlp.machine import facts


def test_the_peak_is_a_number_on_every_system(monkeypatch):
    def unreadable(*_arguments, **_options):
        raise OSError

    assert facts.peak_bytes() > 2**20
    monkeypatch.setattr(Path, "read_text", unreadable)
    assert facts.peak_bytes() > 2**20  # what getrusage says
    monkeypatch.setattr(sys, "platform", "win32")
    assert facts.peak_bytes() / 2**20 == 0
