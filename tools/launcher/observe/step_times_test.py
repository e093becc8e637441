"""How long a run will still take, as far as watching it tells."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.observe.spans import seconds_between, span_words
from tools.launcher.observe.step_times import WINDOW, StepTimes

PAUSES = st.lists(st.tuples(st.floats(0.01, 5000), st.integers(0, 3)), min_size=1, max_size=60)


def watched(looks):
    """Look after each pause, at a count that rose by so much; and the time then."""
    times, now, step = StepTimes(), 100.0, 0
    for pause, more in looks:
        now, step = now + pause, step + more
        times = times.seen(now, step)
    return times, now


@given(st.floats(0.1, 10_000), st.integers(2, 50), st.integers(0, 100), st.integers(0, 30))
def test_a_steady_run_is_told_exactly(pace, ends, left, before):
    times = StepTimes().seen(0.0, before)
    for count in range(1, ends + 1):
        times = times.seen(7.5 + count * pace, before + count)
    now = 7.5 + ends * pace
    assert times.seconds_per_step == pytest.approx(pace)
    assert times.seconds_left(now, before + ends + left) == pytest.approx(left * pace)


@given(PAUSES, st.integers(0, 400), st.floats(0, 10_000))
def test_an_estimate_is_never_negative_and_never_grows_while_nothing_happens(looks, steps, waited):
    times, now = watched(looks)
    left, later = times.seconds_left(now, steps), times.seconds_left(now + waited, steps)
    assert (left is None) == (later is None)
    if left is not None and later is not None:
        assert 0 <= later <= left


@given(PAUSES)
def test_nothing_is_told_before_two_steps_were_seen_to_end(looks):
    times, now = watched(looks)
    rises = sum(more > 0 for _, more in looks[1:])
    assert (times.seconds_per_step is None) == (rises < 2)
    assert len(times.ends) == min(rises, WINDOW)
    assert (times.seconds_left(now, None), StepTimes().seconds_left(now, 5)) == (None, None)


def test_steps_that_are_done_again_begin_anew():
    times = StepTimes().seen(0.0, 0).seen(10.0, 1).seen(20.0, 2).seen(30.0, 3)
    assert times.seconds_left(30.0, 5) == 20.0
    again = times.seen(90.0, 1)
    assert again == StepTimes(step=1)
    assert again.seen(95.0, None) == again


def test_the_latest_steps_count():
    times = StepTimes(step=0)
    for count in range(1, 60):
        times = times.seen(count * 1000.0 if count < 30 else 30_000 + count * 10.0, count)
    assert times.seconds_per_step == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (3600, "1 h"),
        (18_720, "5 h 12 min"),
        (183_600, "2 d 3 h"),
    ],
)
def test_spans_have_two_units(seconds, words):
    assert span_words(seconds) == words


def test_clocks_that_disagree_make_no_negative_span():
    early, late = "2026-11-30T12:00:00Z", "2026-11-30T12:00:01.500Z"
    assert (seconds_between(early, late), seconds_between(late, early)) == (1.5, 0.0)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
