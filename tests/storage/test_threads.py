"""Reading ahead and working in the background: order, overlap of at most one, and errors that arrive."""

import threading

import pytest

from gamlp.storage.threads import background, prefetch


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
