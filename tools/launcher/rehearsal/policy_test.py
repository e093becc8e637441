import sys

import numpy as np
import pytest

from tools.launcher.rehearsal.policy import (
    SHAPE,
    AdamState,
    Objective,
    adam_update,
    advantages,
    greedy_answers,
    initial_weights,
    log_probabilities,
    loss_and_gradient,
    sample_answers,
)

ROWS = 40


def _objective(**changes):
    values = {"eps_clip_low": 0.2, "eps_clip_high": 0.2, "kl_coefficient": 0.0, "temperature": 1.0}
    return Objective(**{**values, **changes})


def _batch(seed=5):
    random = np.random.default_rng(seed)
    weights = random.standard_normal(SHAPE)
    quantities = random.integers(0, 10, ROWS)
    answers = random.integers(0, 10, ROWS)
    rows = np.arange(ROWS)
    # Old probabilities apart from the new ones, so that some rows are clipped on either side.
    old = log_probabilities(weights, quantities, 1.0)[rows, answers] + random.normal(0, 0.4, ROWS)
    return weights, random.standard_normal(SHAPE), quantities, answers, old, random.standard_normal(ROWS)


@pytest.mark.parametrize(
    "objective",
    [
        _objective(),
        _objective(eps_clip_low=0.1, eps_clip_high=0.3),
        _objective(temperature=0.7),
        _objective(kl_coefficient=0.5),
        _objective(kl_coefficient=0.05, temperature=1.3, eps_clip_high=0.28),
    ],
)
def test_the_gradient_is_the_derivative_of_the_loss(objective):
    weights, *rest = _batch()
    _, gradient = loss_and_gradient(weights, *rest, objective)
    numeric = np.zeros(SHAPE)
    step = 1e-6
    for place in np.ndindex(SHAPE):
        above, below = weights.copy(), weights.copy()
        above[place] += step
        below[place] -= step
        numeric[place] = (
            loss_and_gradient(above, *rest, objective)[0] - loss_and_gradient(below, *rest, objective)[0]
        ) / (2 * step)
    assert np.abs(gradient).max() > 0.1
    np.testing.assert_allclose(gradient, numeric, atol=2e-6)


def test_clipped_rows_pull_no_more():
    weights, reference, quantities, answers, _, _ = _batch()
    log_probs = log_probabilities(weights, quantities, 1.0)[np.arange(ROWS), answers]
    # Ratios of e: far above 1.2. With a positive advantage the clip holds, with a negative it does not.
    old = log_probs - 1.0
    _, still = loss_and_gradient(weights, reference, quantities, answers, old, np.ones(ROWS), _objective())
    _, moving = loss_and_gradient(weights, reference, quantities, answers, old, -np.ones(ROWS), _objective())
    assert not still.any()
    assert moving.any()


def test_the_kl_penalty_is_zero_at_the_reference_and_pulls_back_elsewhere():
    weights, _, quantities, answers, _, _ = _batch()
    old = log_probabilities(weights, quantities, 1.0)[np.arange(ROWS), answers]
    objective = _objective(kl_coefficient=1.0)
    loss, gradient = loss_and_gradient(weights, weights, quantities, answers, old, np.zeros(ROWS), objective)
    assert abs(loss) < 1e-12
    assert np.abs(gradient).max() < 1e-12
    reference = np.zeros(SHAPE)
    before, gradient = loss_and_gradient(
        weights, reference, quantities, answers, old, np.zeros(ROWS), objective
    )
    after, _ = loss_and_gradient(
        weights - 0.01 * gradient, reference, quantities, answers, old, np.zeros(ROWS), objective
    )
    assert 0 < after < before


def test_advantages_are_relative_to_the_group():
    rewards = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]])
    grpo = advantages(rewards, "grpo", True)
    # mean 1/4, sample standard deviation 1/2
    np.testing.assert_allclose(grpo[0], [1.5, -0.5, -0.5, -0.5], atol=1e-5)
    assert not grpo[1:].any()
    np.testing.assert_allclose(advantages(rewards, "grpo", False)[0], [0.75, -0.25, -0.25, -0.25])
    # r minus the mean of the others
    np.testing.assert_allclose(advantages(rewards, "rloo", True)[0], [1.0, -1 / 3, -1 / 3, -1 / 3])


def test_sampling_follows_the_distribution():
    weights = np.zeros(SHAPE)
    weights[3, 7] = 2.0
    quantities = np.full(20_000, 3)
    drawn = sample_answers(weights, quantities, np.random.default_rng(0).random(20_000), 1.0)
    expected = np.exp(log_probabilities(weights, np.array([3]), 1.0))[0]
    np.testing.assert_allclose(np.bincount(drawn, minlength=10) / 20_000, expected, atol=0.012)
    assert greedy_answers(weights, np.array([3])).tolist() == [7]


def test_the_largest_uniform_number_still_gives_an_answer():
    assert sample_answers(np.zeros(SHAPE), np.array([0]), np.array([1.0]), 1.0).tolist() == [9]


def test_adam_matches_its_first_two_steps_by_hand():
    gradient = np.full(SHAPE, 0.5)
    weights, state = adam_update(np.zeros(SHAPE), AdamState.fresh(), gradient)
    # The first step is the learning rate against the sign, whatever the size.
    np.testing.assert_allclose(weights, -1.0, atol=1e-6)
    weights, state = adam_update(weights, state, -gradient)
    # mean: 0.9*0.05 - 0.1*0.5 = -0.005 over 1-0.81; square: 0.25 in both, corrected.
    np.testing.assert_allclose(weights, -1.0 + 0.005 / 0.19 / 0.5, atol=1e-6)
    assert state.updates == 2


def test_initial_weights_follow_the_seed():
    assert np.array_equal(initial_weights(3), initial_weights(3))
    assert not np.array_equal(initial_weights(3), initial_weights(4))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
