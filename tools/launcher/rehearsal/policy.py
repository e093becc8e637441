"""A policy of ten by ten logits and its policy gradient, in NumPy.

The gradient is the real one: group-relative advantages, the clipped ratio, an exact KL penalty
against the starting weights, derived by hand and checked against finite differences in the test.
Row i of the logits belongs to quantity i of the toy environments, column j to answer j.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict

from tools.launcher.rehearsal.environments import ANSWERS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The document's learning rate is for a language model; with it a hundred logits would not move.
# Adam's update is about this size per logit, and a logit lead of 3 already decides an answer.
REHEARSAL_LEARNING_RATE: Final = 1.0
ADAM_BETAS: Final = (0.9, 0.999)
ADAM_EPS: Final = 1e-8
ADVANTAGE_EPS: Final = 1e-6
SHAPE: Final = (ANSWERS, ANSWERS)


class Objective(BaseModel):
    """What of the document's algorithm section the loss needs."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    eps_clip_low: float
    eps_clip_high: float
    kl_coefficient: float
    temperature: float


class AdamState:
    """Adam's moments and the number of updates made."""

    def __init__(self, mean: Floats, square: Floats, updates: int) -> None:
        self.mean, self.square, self.updates = mean, square, updates

    @classmethod
    def fresh(cls) -> "AdamState":
        """Return the state before the first update."""
        return cls(np.zeros(SHAPE), np.zeros(SHAPE), 0)


def initial_weights(seed: int) -> Floats:
    """Return small random logits: a policy which knows nothing."""
    return 0.01 * np.random.Generator(np.random.Philox(key=[seed, 0])).standard_normal(SHAPE)


def log_probabilities(weights: Floats, quantities: Ints, temperature: float) -> Floats:
    """Return the log-probability of every answer, one line for each quantity."""
    logits = weights[quantities] / temperature
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def sample_answers(weights: Floats, quantities: Ints, uniforms: Floats, temperature: float) -> Ints:
    """Draw one answer for each quantity by inverting the distribution at the given uniform numbers."""
    cumulative = np.exp(log_probabilities(weights, quantities, temperature)).cumsum(axis=1)
    return np.minimum((cumulative < uniforms[:, None]).sum(axis=1), ANSWERS - 1).astype(np.int64)


def greedy_answers(weights: Floats, quantities: Ints) -> Ints:
    """Return the most probable answer for each quantity."""
    return weights[quantities].argmax(axis=1).astype(np.int64)


def advantages(rewards: Floats, estimator: str, norm_by_std: bool) -> Floats:
    """Return the advantage of every answer relative to its group.

    Args:
        rewards: prompts x samples.
        estimator: "grpo" ((r - mean) / (std + eps), the sample standard deviation) or "rloo"
            (r - mean of the group's other rewards).
        norm_by_std: for grpo, whether to divide (trainer.algorithm.grpo_norm_by_std).
    """
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    if estimator == "rloo":
        samples = rewards.shape[1]
        leave_one_out: Floats = centred * (samples / (samples - 1))
        return leave_one_out
    if not norm_by_std:
        return centred
    normalised: Floats = centred / (rewards.std(axis=1, ddof=1, keepdims=True) + ADVANTAGE_EPS)
    return normalised


def loss_and_gradient(
    weights: Floats,
    reference: Floats,
    quantities: Ints,
    answers: Ints,
    old_log_probs: Floats,
    row_advantages: Floats,
    objective: Objective,
) -> tuple[float, Floats]:
    """Return the SUM over rows of loss and gradient; the caller divides by the rows of the mini batch.

    The loss of a row is -min(r A, clip(r) A) + kl_coefficient * KL(policy || reference), with r the
    ratio of the answer's probability to that of the policy which drew it.
    """
    log_probs = log_probabilities(weights, quantities, objective.temperature)
    rows = np.arange(len(quantities))
    probabilities = np.exp(log_probs)
    ratios = np.exp(log_probs[rows, answers] - old_log_probs)
    clipped = np.clip(ratios, 1 - objective.eps_clip_low, 1 + objective.eps_clip_high)
    loss = -np.minimum(ratios * row_advantages, clipped * row_advantages)

    # Where the clipped branch is the smaller one it is constant: such a row pulls no more.
    active = ratios * row_advantages <= clipped * row_advantages
    pull = np.where(active, -row_advantages * ratios, 0.0)
    by_logit = -pull[:, None] * probabilities
    by_logit[rows, answers] += pull

    if objective.kl_coefficient:
        difference = log_probs - log_probabilities(reference, quantities, objective.temperature)
        divergence = (probabilities * difference).sum(axis=1)
        loss = loss + objective.kl_coefficient * divergence
        by_logit += objective.kl_coefficient * probabilities * (difference - divergence[:, None])

    gradient = np.zeros(SHAPE)
    np.add.at(gradient, quantities, by_logit / objective.temperature)
    return float(loss.sum()), gradient


def adam_update(weights: Floats, state: AdamState, gradient: Floats) -> tuple[Floats, AdamState]:
    """Return weights and state after one step of Adam at REHEARSAL_LEARNING_RATE."""
    updates = state.updates + 1
    mean = ADAM_BETAS[0] * state.mean + (1 - ADAM_BETAS[0]) * gradient
    square = ADAM_BETAS[1] * state.square + (1 - ADAM_BETAS[1]) * gradient**2
    mean_hat = mean / (1 - ADAM_BETAS[0] ** updates)
    square_hat = square / (1 - ADAM_BETAS[1] ** updates)
    step = REHEARSAL_LEARNING_RATE * mean_hat / (np.sqrt(square_hat) + ADAM_EPS)
    return weights - step, AdamState(mean, square, updates)
