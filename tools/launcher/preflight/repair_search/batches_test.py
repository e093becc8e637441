"""Candidates of batches: each obeys the rules, and the nearest come first."""

import math
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.launcher.preflight.repair_search.batches import BatchOption, batch_options
from tools.launcher.preflight.repair_search.facts import Facts
from tools.launcher.preflight.repair_search.plan import PATHS, Current, Plan, read_current
from tools.launcher.preflight.repair_search.ranking import WARNING_DISTANCE
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import changed, dataset_card, document, pinned_runtime

_FULLY_ASYNC = {"skyrl.entrypoint": "fully_async"}


def _read(base: str, changes: dict[str, Any] | None = None, **values: Any) -> tuple[Facts, Current]:
    cards = {name: values.pop(name) for name in ("train_dataset", "validation_dataset") if name in values}
    runtime = values.pop("runtime", pinned_runtime())
    content = changed(
        document(base), {PATHS[name]: value for name, value in values.items()} | (changes or {})
    )
    subject = PreflightSubject(document=content, runtime=runtime, **cards)
    return Facts.of(subject), read_current(subject, Plan._fields)


def _options(
    facts: Facts,
    current: Current,
    ranks: int = 8,
    dispatch: int = 8,
    samples: int = 4,
) -> dict[int, list[BatchOption]]:
    return batch_options(facts, current, ranks=ranks, dispatch=dispatch, samples=samples)


def test_a_legal_batch_stays_as_it_is():
    facts, current = _read("smoke")
    assert _options(facts, current)[0] == [BatchOption(0, 0, 0.0, (16, 16, 1, 4, 1, current.plan.workers))]


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ({"train": 16, "mini": 6}, (16, 8, 1)),
        ({"train": 8, "mini": 1}, (8, 2, 1)),
        ({"train": 12, "mini": 12, "micro": 4}, (12, 12, 3)),
        ({"train": 8, "mini": 16}, (8, 8, 1)),
        ({"train": 4, "mini": 4}, (8, 4, 1)),
        ({"train": 10**9, "mini": 16}, (32, 16, 1)),
    ],
)
def test_the_nearest_batch_with_one_change_comes_first(values, first):
    facts, current = _read("smoke", **values)
    assert 0 not in _options(facts, current)
    assert _options(facts, current)[1][0].values[:3] == first


def test_a_micro_batch_never_grows_unless_it_cannot_be_read():
    facts, current = _read("smoke", micro=3)
    assert {option.values[2] for option in _options(facts, current)[1]} <= {1, 2}
    facts, current = _read("smoke", micro="x")
    assert [option.values[2] for option in _options(facts, current)[1]] == [1, 2, 4]


def test_dropped_prompts_are_a_warning_that_weighs():
    facts, current = _read("smoke", train=20, mini=6)
    for train, mini, warnings in ((20, 10, 1), (24, 6, 0)):
        option = next(each for each in _options(facts, current)[1] if each.values[:2] == (train, mini))
        size = abs(math.log(train / 20)) + abs(math.log(mini / 6))
        assert option.warnings == warnings
        assert option.distance == pytest.approx(size + warnings * WARNING_DISTANCE)


def test_fully_async_and_megatron_move_what_follows():
    facts, current = _read("moe", _FULLY_ASYNC, train=128, workers=64)
    values = [option.values for options in _options(facts, current, 16, 16, 8).values() for option in options]
    assert values and all(train == mini <= workers for train, mini, *_, workers in values)
    facts, current = _read("moe", micro=2)
    assert {option.values[4] for option in _options(facts, current, 16, 16, 8)[1]} == {1, 2}


def test_best_of_n_leaves_one_row_per_prompt():
    facts, current = _read(
        "smoke", {"skyrl.trainer.trajectory_selector.type": "best_of_n"}, train=20, mini=20
    )
    assert all(
        option.values[1] % 8 == 0 for options in _options(facts, current).values() for option in options
    )


def test_the_data_bounds_the_train_batch():
    facts, current = _read("smoke", train_dataset=dataset_card(rows=12))
    trains = {option.values[0] for options in _options(facts, current).values() for option in options}
    assert trains and max(trains) <= 12
    facts, current = _read(
        "smoke",
        validation_dataset=dataset_card(validation_rows=40),
        runtime=pinned_runtime(validation_rows_multiple_of_batch=True),
    )
    trains = {option.values[0] for options in _options(facts, current).values() for option in options}
    assert trains and all(40 % train == 0 for train in trains)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    train=st.integers(1, 200), mini=st.integers(1, 200), micro=st.integers(1, 20), ranks=st.integers(1, 64),
    times=st.integers(1, 4), samples=st.integers(1, 16),
)  # fmt: skip
def test_every_batch_obeys_the_rules(train, mini, micro, ranks, times, samples):
    facts, current = _read("smoke", train=train, mini=mini, micro=micro)
    dispatch = ranks * times
    options = _options(facts, current, ranks, dispatch, samples)
    assert options
    for steps, same in options.items():
        assert same == sorted(same) and {option.steps for option in same} == {steps}
        for option in same:
            t, m, u, *_ = option.values
            rows = m * samples // ranks
            assert t >= dispatch and t % m == 0 and m % u == 0 and m * samples % ranks == 0
            assert rows > 0 and rows % u == 0 and t * samples // ranks % rows == 0
            assert math.isfinite(option.distance)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
