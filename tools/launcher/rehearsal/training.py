"""The training loop of one rank: rollouts, advantages, mini batches, updates.

Batch arithmetic is the document's. A training step takes T prompts, n answers each. The T prompts
are divided over the tasks (the data-parallel ranks) in blocks; a group of answers stays together.
Each mini batch of M prompts gives one optimiser update from the sum of all ranks' gradients,
accumulated over micro batches of u rows for each of the task's GPUs.

Every draw is keyed by seed and step and made for the whole batch on every rank, so the same
answers are drawn however many ranks share the work, and a resumed run draws what an unbroken
one would have drawn.
"""

from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict

from tools.launcher.rehearsal.document import RehearsalDocument
from tools.launcher.rehearsal.environments import Row, ToyEnvironment
from tools.launcher.rehearsal.policy import (
    AdamState,
    Floats,
    Ints,
    Objective,
    adam_update,
    advantages,
    greedy_answers,
    log_probabilities,
    loss_and_gradient,
    sample_answers,
)
from tools.launcher.rehearsal.rendezvous import Gang

# Domain separation of the generators' keys: order of prompts, and drawn answers.
_ORDER_STREAM: Final = 1 << 32
_ANSWER_STREAM: Final = 2 << 32


class Plan(BaseModel):
    """The numbers of the document which the loop follows (T, M, n, rows of a micro batch per task)."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    seed: int
    train_batch: int
    mini_batch: int
    samples: int
    micro_rows: int
    update_epochs: int
    last_step: int
    estimator: str
    norm_by_std: bool
    objective: Objective


class StepReport(BaseModel):
    """One line of metrics.jsonl, without the lines' constant fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    step: int
    reward_mean: float
    loss: float
    gradient_norm: float
    tokens: int
    rows: int
    optimizer_updates: int


def plan_of(document: RehearsalDocument, train_rows: int) -> Plan:
    """Return the loop's numbers.

    The number of steps is `trainer.max_steps`; without it, epochs x (rows // T), at least one. Toy
    datasets are short: steps beyond their rows go round again in another order.
    """
    trainer, generator = document.skyrl.trainer, document.skyrl.generator
    algorithm = trainer.algorithm
    by_rows = max(1, trainer.epochs * (train_rows // trainer.train_batch_size))
    return Plan(
        seed=document.run.seed,
        train_batch=trainer.train_batch_size,
        mini_batch=trainer.policy_mini_batch_size,
        samples=generator.n_samples_per_prompt,
        micro_rows=trainer.micro_train_batch_size_per_gpu * trainer.placement.policy_num_gpus_per_node,
        update_epochs=trainer.update_epochs_per_batch,
        last_step=trainer.max_steps if trainer.max_steps is not None else by_rows,
        estimator=algorithm.advantage_estimator,
        norm_by_std=algorithm.grpo_norm_by_std,
        objective=Objective(
            eps_clip_low=algorithm.eps_clip_low,
            eps_clip_high=algorithm.eps_clip_high,
            kl_coefficient=algorithm.kl_loss_coef if algorithm.use_kl_loss else 0.0,
            temperature=generator.sampling_params.temperature,
        ),
    )


def share(count: int, rank: int, world_size: int) -> slice:
    """Return the block of `count` items which belongs to `rank`; blocks differ by at most one."""
    return slice(count * rank // world_size, count * (rank + 1) // world_size)


def train_step(
    plan: Plan,
    step: int,
    weights: Floats,
    reference: Floats,
    optimizer: AdamState,
    rows: tuple[Row, ...],
    environment: ToyEnvironment,
    gang: Gang,
) -> tuple[Floats, AdamState, StepReport]:
    """Do training step `step` (from 1) together with the gang.

    Returns:
        New weights and optimiser state, equal on every rank, and the step's report.

    Raises:
        GangError, PeerLost: as the gang.
    """
    batch = [rows[index] for index in _prompt_indices(plan, step, len(rows))]
    # What a rank sees: its block of each mini batch, so that every rank has work in every update.
    minis = [range(start, start + plan.mini_batch) for start in range(0, plan.train_batch, plan.mini_batch)]
    mine = [list(mini)[share(plan.mini_batch, gang.rank, gang.world_size)] for mini in minis]
    uniforms = np.random.Generator(np.random.Philox(key=[plan.seed, _ANSWER_STREAM + step])).random(
        (plan.train_batch, plan.samples)
    )

    rollouts = [
        _rollout(plan, weights, [batch[i] for i in block], uniforms[block], environment) for block in mine
    ]
    reward_sum = sum(float(rollout.rewards.sum()) for rollout in rollouts)
    tokens = sum(rollout.tokens for rollout in rollouts)

    loss_sum, updates, norm = 0.0, 0, 0.0
    for _ in range(plan.update_epochs):
        for rollout in rollouts:
            local_loss, local_gradient = _accumulate(plan, weights, reference, rollout)
            gradient = gang.sum(local_gradient, "gradients") / (plan.mini_batch * plan.samples)
            weights, optimizer = adam_update(weights, optimizer, gradient)
            loss_sum, updates, norm = loss_sum + local_loss, updates + 1, float(np.linalg.norm(gradient))

    total = gang.sum(np.array([reward_sum, loss_sum, float(tokens)]), "rewards")
    answers = plan.train_batch * plan.samples
    return (
        weights,
        optimizer,
        StepReport(
            step=step,
            reward_mean=float(total[0]) / answers,
            loss=float(total[1]) / (answers * plan.update_epochs),
            gradient_norm=norm,
            tokens=int(total[2]),
            rows=answers,
            optimizer_updates=optimizer.updates,
        ),
    )


def evaluate(weights: Floats, rows: tuple[Row, ...], environment: ToyEnvironment) -> float:
    """Return the share of rows answered right by the most probable answer."""
    quantities = np.array([environment.read(row.prompt) for row in rows], dtype=np.int64)
    right = np.array([row.answer for row in rows], dtype=np.int64)
    return float((greedy_answers(weights, quantities) == right).mean())


class _Rollout(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    quantities: Ints
    answers: Ints
    old_log_probs: Floats
    advantages: Floats
    rewards: Floats
    tokens: int


def _prompt_indices(plan: Plan, step: int, row_count: int) -> list[int]:
    indices = []
    for position in range((step - 1) * plan.train_batch, step * plan.train_batch):
        epoch, place = divmod(position, row_count)
        indices.append((epoch, place))
    epochs = {epoch for epoch, _ in indices}
    orders = {
        epoch: np.random.Generator(np.random.Philox(key=[plan.seed, _ORDER_STREAM + epoch])).permutation(
            row_count
        )
        for epoch in epochs
    }
    return [int(orders[epoch][place]) for epoch, place in indices]


def _rollout(
    plan: Plan, weights: Floats, block: list[Row], uniforms: Floats, environment: ToyEnvironment
) -> _Rollout:
    quantities = np.repeat(
        np.array([environment.read(row.prompt) for row in block], dtype=np.int64), plan.samples
    )
    right = np.repeat(np.array([row.answer for row in block], dtype=np.int64), plan.samples)
    temperature = plan.objective.temperature
    answers = sample_answers(weights, quantities, uniforms.reshape(-1), temperature)
    rewards = (answers == right).astype(np.float64)
    log_probs = log_probabilities(weights, quantities, temperature)[np.arange(len(answers)), answers]
    grouped = advantages(rewards.reshape(len(block), plan.samples), plan.estimator, plan.norm_by_std)
    # An answer is one token; a prompt's tokens are its words, read once for each answer.
    tokens = plan.samples * sum(len(row.prompt.split()) + 1 for row in block)
    return _Rollout(
        quantities=quantities,
        answers=answers,
        old_log_probs=log_probs,
        advantages=grouped.reshape(-1),
        rewards=rewards,
        tokens=tokens,
    )


def _accumulate(plan: Plan, weights: Floats, reference: Floats, rollout: _Rollout) -> tuple[float, Floats]:
    loss, gradient = 0.0, np.zeros_like(weights)
    for start in range(0, len(rollout.answers), plan.micro_rows):
        rows = slice(start, start + plan.micro_rows)
        micro_loss, micro_gradient = loss_and_gradient(
            weights,
            reference,
            rollout.quantities[rows],
            rollout.answers[rows],
            rollout.old_log_probs[rows],
            rollout.advantages[rows],
            plan.objective,
        )
        loss, gradient = loss + micro_loss, gradient + micro_gradient
    return loss, gradient
