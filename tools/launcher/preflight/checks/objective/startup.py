"""Timeouts, enumerations and amounts that the trainer validates when it starts."""

from collections.abc import Iterator
from difflib import get_close_matches

from tools.launcher.preflight.bounds import (
    AT_LEAST_ONE,
    FRACTION,
    NOT_NEGATIVE,
    POSITIVE,
    Bounds,
    Limit,
    number,
    out_of_bounds,
)
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import delete, listed, set_to, shown

_POSITIVE = (
    Limit("generator.engine_init_timeout_seconds", POSITIVE, 1800),
    Limit("generator.expert_block_sync.timeout_seconds", POSITIVE, 600),
    Limit("generator.r3_dispatch_put_timeout_seconds", POSITIVE, 600),
    Limit("generator.timeout_multiplier", POSITIVE, 1),
    Limit("generator.weight_sync_pause_timeout_seconds", POSITIVE, 30),
    Limit("trainer.algorithm.group_admission.stall_timeout", POSITIVE, 600),
    Limit("trainer.distributed.placement_group_timeout_seconds", POSITIVE, 180),
    Limit("trainer.distributed.worker_collective_timeout_seconds", POSITIVE, 1800),
    Limit("trainer.model_load_retry.backoff_base_seconds", POSITIVE, 2),
    Limit("trainer.model_load_retry.backoff_cap_seconds", POSITIVE, 32),
    Limit("trainer.policy.fsdp_config.expert_loader_chunk_rows", POSITIVE, 8),
    Limit("trainer.policy.host_memory_monitor.interval_seconds", POSITIVE, 60),
    Limit("trainer.progress.count_step", POSITIVE, 1000),
    Limit("trainer.progress.heartbeat_seconds", POSITIVE, 60),
    Limit("trainer.progress.min_interval_seconds", POSITIVE, 0.5),
    Limit("trainer.progress.percent_step", POSITIVE, 5),
    Limit("trajectory_runner.process_pool.cpus_per_coordinator", POSITIVE, 8),
    Limit("trajectory_runner.process_pool.executor_workers", POSITIVE, 256),
    Limit("trajectory_runner.process_pool.num_coordinators", POSITIVE, 4),
    Limit("trajectory_runner.process_pool.rpc_timeout_seconds", POSITIVE, 21600),
    Limit("trainer.algorithm.tis_lcs_alert_threshold", NOT_NEGATIVE, 0.005),
    Limit("trainer.model_load_retry.max_retries", NOT_NEGATIVE, 5),
)

_ALWAYS_READ = (
    "data.sampling.kind",
    "generator.gdn_backend",
    "generator.model_dtype",
    "generator.override_existing_update_group",
    "generator.r3_transport",
    "generator.weight_sync_backend",
    "generator.weight_sync_transport",
    "trainer.algorithm.dynamic_sampling.informative_on",
    "trainer.algorithm.dynamic_sampling.type",
    "trainer.progress.mode",
    "trainer.sequence_parallel_backend",
    "trainer.trajectory_selector.type",
)
"""Enumerations without a check of their own; the others are OBJ-15, 18, 19, CTX-14, 15 and BKD-13."""

_PAUSE = "trainer.fully_async.pause_mode"
_WEIGHTING = "data.sampling.weighting"
_LOGGER = "skyrl.trainer.logger"


@check(
    "OBJ-09",
    "timeouts are positive and words are known",
    area="objective",
    rule="; ".join(f"{limit.path} {limit.bounds}" for limit in _POSITIVE)
    + f"; in their enumerations: {', '.join((*_ALWAYS_READ, _PAUSE, _WEIGHTING))}; a warning for a word that nobody reads, and "
    "for an unknown trainer.logger",
    prevents="The trainer refuses the document after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-09 (#98), MarinSkyRL skyrl_train/utils/utils.py@004e15f9; the trainer",
)
def obj_09(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _POSITIVE)
    enumerations = subject.manifest().recipe_enums
    for name in (*_ALWAYS_READ, _PAUSE, _WEIGHTING):
        known, path = enumerations.get(name), f"skyrl.{name}"
        value = subject.get(path)
        if known is None or value is None or value in known:
            continue
        words = [word for word in known if word is not None]
        near = get_close_matches(value, words, n=1) if isinstance(value, str) else []
        reader = _only_reader(subject, name)
        yield Finding(
            path=path,
            message=f"{name}={shown(value)}{f' (only {reader} reads it)' if reader else ''}. "
            f"Known: {listed(shown(word) if word is None else word for word in known)}",
            repair=set_to(path, *(near or words)),
            severity="warning" if reader else "error",
        )
    yield from _logger_problems(subject)


def _only_reader(subject: PreflightSubject, name: str) -> str:
    """What would read the word, where this document has it not; empty where it is read."""
    if name == _PAUSE and subject.entrypoint != "fully_async":
        return "fully_async"
    if name == _WEIGHTING and not subject.has("skyrl.data.sampling.kind"):
        return "data.sampling.kind"
    return ""


def _logger_problems(subject: PreflightSubject) -> Iterator[Finding]:
    known, value = subject.manifest().loggers, subject.get(_LOGGER)
    words = value if isinstance(value, list) else [value]
    for word in words if known else ():
        if isinstance(word, str) and "${" not in word and word not in known:
            near = get_close_matches(word, known, n=1) or known
            yield Finding(
                path=_LOGGER,
                message=f"trainer.logger {shown(word)} is unknown, as far as is known. Known: {listed(known)}",
                repair=set_to(_LOGGER, *near),
                severity="warning",
            )


_MODE = "skyrl.trainer.policy.grug_query_bias_update_mode"
_WEIGHT = "skyrl.trainer.policy.grug_query_bias_interpolation_weight"
_UPDATE_RATE = "skyrl.trainer.policy.grug_query_bias_update_rate"
_OPEN_FRACTION = Bounds(low=0, high=1, open_low=True, open_high=True)


@check(
    "OBJ-15",
    "the query-bias update has its parameter, and no other",
    area="objective",
    rule="grug_query_bias_update_mode known; interpolate: interpolation_weight in (0, 1); loss_free: update_rate > 0; "
    "neither elsewhere",
    prevents="The trainer refuses the document, or ignores the parameter.",
    inputs=("spec", "runtime"),
    source="catalogue OBJ-15 (new), MarinSkyRL skyrl_train/config/query_bias.py@0932362a; newer trainers",
)
def obj_15(subject: PreflightSubject) -> Iterator[Finding]:
    modes = subject.manifest().recipe_enums.get(_MODE.removeprefix("skyrl."))
    if not any(subject.has(path) for path in (_MODE, _WEIGHT, _UPDATE_RATE)):
        return
    mode = subject.text(_MODE)
    if modes is not None and mode not in modes:
        yield Finding(
            path=_MODE,
            message=f"grug_query_bias_update_mode is {shown(mode)}. Known: {listed(modes)}",
            repair=set_to(_MODE, *modes),
        )
        return
    for path, owner, bounds, suggestion in (
        (_WEIGHT, "interpolate", _OPEN_FRACTION, 0.5),
        (_UPDATE_RATE, "loss_free", POSITIVE, 0.001),
    ):
        name, value = path.rpartition(".")[2].removeprefix("grug_query_bias_"), subject.get(path)
        if mode != owner:
            if value is not None:
                yield Finding(
                    path=path,
                    message=f"{name}={shown(value)} needs mode {owner}, it is {mode}",
                    repair=delete(path),
                )
        elif type(value) not in (int, float) or not bounds.holds(value):
            yield Finding(
                path=path,
                message=f"mode {owner} needs {name} {bounds}, got {shown(value)}",
                repair=set_to(path, suggestion),
            )


_SHAPING = "generator.trajectory_reward_shaping"
_RETENTION = "generator.trajectory_retention"
_AMOUNTS = (
    Limit(f"{_SHAPING}.loop.max_period_tokens", AT_LEAST_ONE, 64),
    Limit(f"{_SHAPING}.loop.minimum_occurrences", Bounds(low=2), 4),
    Limit(f"{_SHAPING}.loop.advantage_penalty_per_token", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.loop.max_advantage_penalty", NOT_NEGATIVE, 0.2),
    Limit(f"{_SHAPING}.non_termination.penalty", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.overlong.l_max", NOT_NEGATIVE, 1024),
    Limit(f"{_SHAPING}.overlong.l_cache", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.overlong.penalty_scale", NOT_NEGATIVE, 1),
    Limit(f"{_SHAPING}.passthrough.penalty", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.successful_length.free_tokens", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.successful_length.penalty_per_token", NOT_NEGATIVE, 0),
    Limit(f"{_SHAPING}.successful_length.max_penalty", NOT_NEGATIVE, 0.2),
    Limit(f"{_RETENTION}.sample_count_per_step", NOT_NEGATIVE, 1),
    Limit(f"{_RETENTION}.sample_fraction", FRACTION, 0),
    Limit(f"{_RETENTION}.max_bytes_per_step", NOT_NEGATIVE, 838860800),
    Limit(f"{_RETENTION}.max_bytes_per_run", NOT_NEGATIVE, 26843545600),
    Limit(f"{_RETENTION}.publish_timeout_seconds", POSITIVE, 120),
    Limit(f"{_RETENTION}.shutdown_timeout_seconds", POSITIVE, 30),
)
_PHASES = f"skyrl.{_RETENTION}.phases"
_STOP_REASONS = tuple(
    f"skyrl.{section}.accepted_stop_reasons" for section in (f"{_SHAPING}.non_termination", _RETENTION)
)


@check(
    "OBJ-25",
    "reward shaping and retention are consistent",
    area="objective",
    rule="penalties, bytes >= 0; sample_fraction in [0, 1]; timeouts > 0; loop.tail_tokens >= max_period_tokens * "
    "minimum_occurrences, max_advantage_penalty > 0 with a penalty per token; overlong.l_cache <= l_max; the schema_version "
    "of the runtime; max_bytes_per_step <= max_bytes_per_run; phases of train and eval; some accepted_stop_reasons",
    prevents="The trainer refuses the document after the GPUs were allocated.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL skyrl_train/trajectory_runners/trajectory_reward_shaping.py@0ae483e0 and "
    "trajectory_retention_config.py@429ad5ed; the trainer",
)
def obj_25(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _AMOUNTS)
    loop = f"skyrl.{_SHAPING}.loop"
    if subject.has(loop):
        tail = subject.integer(f"{loop}.tail_tokens")
        period, times = (
            subject.integer(f"{loop}.{name}") for name in ("max_period_tokens", "minimum_occurrences")
        )
        if tail < period * times:
            yield Finding(
                path=f"{loop}.tail_tokens",
                message=f"loop.tail_tokens={tail} does not cover max_period_tokens*minimum_occurrences={period}*{times}",
                repair=set_to(f"{loop}.tail_tokens", period * times),
            )
    yield from _shaping_problems(subject)
    step, run = (f"skyrl.{_RETENTION}.max_bytes_per_{unit}" for unit in ("step", "run"))
    if (subject.has(step) or subject.has(run)) and 0 <= subject.value(run, int) < subject.value(step, int):
        yield Finding(
            path=step,
            message=f"max_bytes_per_step={shown(subject.value(step, int))} exceeds max_bytes_per_run="
            f"{shown(subject.value(run, int))}",
            repair=set_to(step, subject.value(run, int)),
        )
    phases = subject.get(_PHASES)
    if isinstance(phases, list):
        wrong = [
            phase for phase in phases if not isinstance(phase, str) or phase.lower() not in ("train", "eval")
        ]
        if wrong or not phases:
            yield Finding(
                path=_PHASES,
                message=f"trajectory_retention.phases may hold train and eval, got "
                f"{listed(shown(phase) for phase in phases) or 'none'}",
                repair=delete(_PHASES),
            )
    for path in _STOP_REASONS:
        if subject.get(path) == []:
            yield Finding(
                path=path,
                message=f"{path.removeprefix('skyrl.generator.')} is empty: no answer would count as finished",
                repair=delete(path),
            )


def _shaping_problems(subject: PreflightSubject) -> Iterator[Finding]:
    section = f"skyrl.{_SHAPING}"
    version = subject.get(f"{section}.schema_version")
    known = subject.manifest().recipe_keys.get(f"{_SHAPING}.schema_version")
    if known is not None and type(version) is int and version != known.default:
        yield Finding(
            path=f"{section}.schema_version",
            message=f"trajectory_reward_shaping.schema_version={shown(version)}, the runtime reads {known.default}",
            repair=delete(f"{section}.schema_version"),
        )
    each, most = (
        f"{section}.loop.{name}" for name in ("advantage_penalty_per_token", "max_advantage_penalty")
    )
    if subject.has(each) and number(subject, each) > 0 and number(subject, most) == 0:
        yield Finding(
            path=most,
            message=f"loop.max_advantage_penalty=0 with advantage_penalty_per_token={shown(subject.get(each))}",
            repair=delete(most),
        )
    longest, cache = (subject.get(f"{section}.overlong.{name}") for name in ("l_max", "l_cache"))
    if type(longest) is int and type(cache) is int and 0 <= longest < cache:
        yield Finding(
            path=f"{section}.overlong.l_cache",
            message=f"overlong.l_cache={shown(cache)} exceeds l_max={shown(longest)}",
            repair=set_to(f"{section}.overlong.l_cache", longest),
        )


CHECKS = (obj_09, obj_15, obj_25)
