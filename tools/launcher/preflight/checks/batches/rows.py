"""How prompts become mini batches, micro batches and rows per rank.

T train batch, M mini batch (prompts); u micro batch (rows per GPU); n answers per prompt;
dp data-parallel ranks; m = M*n // dp rows per rank and mini batch.
"""

import math
from collections.abc import Iterator

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.batches.legal import (
    MICRO,
    MINI,
    TRAIN,
    batch_repair,
    whole_batch_repair,
)
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry, ceil_div, divisors, nearest_multiples
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import counted, listed, set_to


def _refusal(subject: PreflightSubject, path: str, message: str, *values: int) -> Finding:
    """The finding at `path` whose repair is the nearest legal batch, or one of `values` where there is none."""
    return Finding(path=path, message=message, repair=batch_repair(subject, set_to(path, *values)))


@check(
    "BAT-01",
    "the train batch is cut into whole mini batches",
    area="batches",
    rule="T % M == 0",
    prevents="An odd last mini batch, or an assertion.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-01 (#37); Marin at build time",
    implied_by=("BAT-07", "BAT-10"),
)
def bat_01(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    train, mini = geometry.train_batch, geometry.mini_batch
    if train % mini:
        yield _refusal(
            subject,
            TRAIN,
            f"train_batch_size={train} is not a multiple of policy_mini_batch_size={mini} "
            f"({train} % {mini} = {train % mini})",
            *nearest_multiples(train, mini),
        )


@check(
    "BAT-02",
    "a mini batch is a multiple of the micro batch",
    area="batches",
    rule="M % u == 0",
    prevents="Marin refuses the experiment; the trainer alone would run M=6, u=4, n=4, dp=2.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-02 (#38), Marin's own rule at build time",
)
def bat_02(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    mini, micro = geometry.mini_batch, geometry.micro_batch
    if mini % micro:
        yield _refusal(
            subject,
            MICRO,
            f"policy_mini_batch_size={mini} is not a multiple of "
            f"micro_train_batch_size_per_gpu={micro} ({mini} % {micro} = {mini % micro})",
            1,
        )


@check(
    "BAT-03",
    "every rank gets rows",
    area="batches",
    rule="m = M*n // dp > 0",
    prevents="Zero rows per GPU: an empty step, or a loop that splits forever.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-03 (#39), failure rows 29 (verl#552) and 35 (TTRL#43); the trainer, after allocation",
)
def bat_03(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    mini, samples, ranks = geometry.mini_batch, geometry.samples, geometry.policy_dp
    if geometry.rows_per_rank > 0:
        return
    least = ceil_div(ranks, samples)
    answers = "" if geometry.best_of_n else f" or n to {ceil_div(ranks, mini)}"
    yield _refusal(
        subject,
        MINI,
        f"each of {counted(ranks, 'data-parallel rank')} gets M*n//dp = {mini}*{samples}//{ranks} = 0 rows. "
        f"Raise M to {least}{answers}",
        least,
    )


@check(
    "BAT-04",
    "the rows of a rank are cut into whole micro batches",
    area="batches",
    rule="m % u == 0",
    prevents="An assertion after allocation.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-04 (#40), failure rows 31 (verl#1811) and 49 (Automodel#1949); the trainer",
    implied_by=("BAT-03",),
)
def bat_04(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    rows, micro = geometry.rows_per_rank, geometry.micro_batch
    if rows % micro:
        yield _refusal(
            subject,
            MICRO,
            f"{counted(rows, 'row')} per GPU (M*n//dp = {geometry.mini_batch}*{geometry.samples}//{geometry.policy_dp}) "
            f"{'is' if rows == 1 else 'are'} not a multiple of micro batch {micro}. Use u from {listed(divisors(rows))}",
            1,
        )


@check(
    "BAT-05",
    "a rank's rows are cut into whole mini batches",
    area="batches",
    rule="(T*n // dp) % m == 0",
    prevents="Mini batches per rank are not whole.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-05 (#41); the trainer",
    implied_by=("BAT-01", "BAT-03", "BAT-07", "BAT-10", "BAT-15"),
)
def bat_05(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    rows = geometry.train_batch * geometry.samples // geometry.policy_dp
    if geometry.rows_per_rank and rows % geometry.rows_per_rank:
        yield _refusal(
            subject,
            MINI,
            f"{counted(rows, 'row')} per GPU do not split into mini batches of {geometry.rows_per_rank} "
            f"({rows} % {geometry.rows_per_rank} = {rows % geometry.rows_per_rank})",
            geometry.train_batch,
        )


@check(
    "BAT-06",
    "the batch reaches every rank of policy and reference",
    area="batches",
    rule="T >= lcm(dp_policy, dp_ref)",
    prevents="The batch cannot be dispatched to both roles.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-06 (#42), failure row 32 (verl#473); the trainer",
)
def bat_06(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    train, multiple = geometry.train_batch, geometry.dispatch_multiple
    if train < multiple:
        yield _refusal(
            subject,
            TRAIN,
            f"train_batch_size={train} < {_multiple_text(geometry)}",
            multiple,
        )


def _multiple_text(geometry: Geometry) -> str:
    if geometry.reference_active:
        return (
            f"lcm(dp {geometry.policy_dp}, reference dp {geometry.reference_dp})={geometry.dispatch_multiple}"
        )
    return f"dp={geometry.dispatch_multiple}"


@check(
    "BAT-10",
    "a mini batch is not larger than the batch",
    area="batches",
    rule="M <= T",
    prevents="There is no whole mini batch in a batch.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-10 (#46); Marin through BAT-01, the trainer",
    implied_by=("BAT-07",),
)
def bat_10(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    if geometry.mini_batch > geometry.train_batch:
        yield _refusal(
            subject,
            MINI,
            f"policy_mini_batch_size={geometry.mini_batch} exceeds train_batch_size={geometry.train_batch}",
            geometry.train_batch,
        )


@check(
    "BAT-14",
    "no prompt of a batch is dropped",
    area="batches",
    rule="T % lcm(dp_policy, dp_ref) == 0",
    prevents="The trainer drops the rest of every batch without a message: T=40, dp=16 trains 32.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-14 (new); nobody checks it",
    implied_by=("BAT-06",),
)
def bat_14(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    train, multiple = geometry.train_batch, geometry.dispatch_multiple
    if train % multiple:
        yield Finding(
            path=TRAIN,
            message=f"{train % multiple} of {counted(train, 'prompt')} {'is' if train % multiple == 1 else 'are'} dropped in each batch: "
            f"train_batch_size={train} is not a multiple of {_multiple_text(geometry)}",
            repair=whole_batch_repair(subject, set_to(TRAIN, *nearest_multiples(train, multiple))),
            severity="warning",
        )


@check(
    "BAT-15",
    "the rows of a mini batch split evenly over the ranks",
    area="batches",
    rule="(M*n) % dp == 0",
    prevents="Division floors silently, or the dispatcher asserts.",
    inputs=("spec", "runtime"),
    source="catalogue BAT-15 (new); nobody before run time",
    implied_by=("BAT-03",),
)
def bat_15(subject: PreflightSubject) -> Iterator[Finding]:
    geometry = Geometry.of(subject)
    mini, samples, ranks = geometry.mini_batch, geometry.samples, geometry.policy_dp
    if (mini * samples) % ranks:
        step = ranks // math.gcd(ranks, samples)
        yield _refusal(
            subject,
            MINI,
            f"M*n = {mini}*{samples} rows do not split over {ranks} data-parallel ranks "
            f"({mini * samples} % {ranks} = {mini * samples % ranks}). M must be a multiple of {step}",
            *nearest_multiples(mini, step),
        )


CHECKS = (bat_01, bat_02, bat_03, bat_04, bat_05, bat_06, bat_10, bat_14, bat_15)
