"""Reading ahead and working in the background: order, overlap of at most one, and errors that arrive."""

import os
import subprocess
import sys
import threading

import pytest

from gamlp.storage.threads import SPIN_COUNT, background, limit_openmp_spin, prefetch


def test_items_come_in_order_and_one_is_made_ahead():
    made, second = [], threading.Event()

    def make(number: int) -> int:
        made.append(number)
        if number == 1:
            second.set()
        return number

    items = prefetch(map(make, range(4)))
    assert next(items) == 0
    assert second.wait(10)  # made though nobody asked for it
    assert made == [0, 1]  # and the one after is not: two buffers are enough
    assert list(items) == [1, 2, 3]
    assert list(prefetch([])) == []


def test_an_error_arrives_after_the_items_before_it():
    seen = []
    with pytest.raises(ZeroDivisionError):
        for item in prefetch(1 // number for number in (1, 0, 1)):
            seen.append(item)
    assert seen == [1]


def test_the_next_start_waits_for_the_task_before():
    done, go = [], threading.Event()
    with background() as start:
        start(lambda: (go.wait(10), done.append("first")))
        assert done == []
        go.set()
        start(done.append, "second")
        assert done[0] == "first"
    assert done == ["first", "second"]


def test_an_error_in_the_background_is_raised_at_the_end():
    with pytest.raises(ZeroDivisionError), background() as start:
        start(lambda: 1 // 0)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {"GOMP_SPINCOUNT": SPIN_COUNT}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, {"OMP_WAIT_POLICY": "ACTIVE"}),
    ],
)
def test_products_threads_sleep_soon_unless_the_environment_says_how_they_wait(monkeypatch, given, found):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that it is put back at the end
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    limit_openmp_spin()
    assert {name: os.environ[name] for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY") if name in os.environ} == found


def test_the_command_line_says_so_before_torch_is_there():
    program = "import os, sys; from gamlp.cli import main; print('torch' in sys.modules)\ntry: main(['--version'])\n"
    program += "finally: print(os.environ['GOMP_SPINCOUNT'])"
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    done = subprocess.run([sys.executable, "-c", program], env=plain, capture_output=True, text=True, check=True)
    assert [done.stdout.split()[0], done.stdout.split()[-1]] == ["False", SPIN_COUNT]
