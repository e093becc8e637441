"""How the rollout engines are started and talked to."""

from collections.abc import Iterator

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.bounds import AT_LEAST_ONE, PORT, Limit, out_of_bounds
from tools.launcher.preflight.check import check
from tools.launcher.preflight.declared import declaration
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.schedule import asynchronous
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import also, counted, delete, set_to

_GENERATOR = "skyrl.generator"
_KWARGS = "generator.engine_init_kwargs"
_BACKEND = f"{_GENERATOR}.backend"
_LOCAL = f"{_GENERATOR}.run_engines_locally"
_ASYNC = f"{_GENERATOR}.async_engine"
_BATCHED = f"{_GENERATOR}.batched"
_HTTP = f"{_GENERATOR}.enable_http_endpoint"
_URLS = f"{_GENERATOR}.remote_inference_engine_urls"
_ENGINES = f"{_GENERATOR}.num_inference_engines"
_TEMPLATE_KWARGS = f"{_GENERATOR}.chat_template_kwargs"
_STEP_WISE = "skyrl.trainer.step_wise_training"
_PAUSE = "skyrl.trainer.fully_async.pause_mode"
_VARIANT = "iris.allocation.gpu_variant"

_PROPER_PATHS = {
    "attention_backend": "generator.vllm_attention_backend",
    "data_parallel_size": "generator.inference_engine_data_parallel_size",
    "disable_radix_cache": "generator.enable_prefix_caching",
    "dtype": "generator.model_dtype",
    "enable_prefix_caching": "generator.enable_prefix_caching",
    "enable_sleep_mode": "trainer.placement.colocate_all",
    "enforce_eager": "generator.enforce_eager",
    "gpu_memory_utilization": "generator.gpu_memory_utilization",
    "max_num_batched_tokens": "generator.max_num_batched_tokens",
    "max_num_seqs": "generator.max_num_seqs",
    "max_prefill_tokens": "generator.max_num_batched_tokens",
    "max_running_requests": "generator.max_num_seqs",
    "mem_fraction_static": "generator.gpu_memory_utilization",
    "model_path": "inputs.model",
    "random_seed": "run.seed",
    "seed": "run.seed",
    "speculative_config": "generator.speculative_decoding",
    "tensor_parallel_size": "generator.inference_engine_tensor_parallel_size",
    "tokenizer": "inputs.model.tokenizer_uri",
    "tp_size": "generator.inference_engine_tensor_parallel_size",
    "vllm_v1_disable_multiproc": "generator.vllm_v1_disable_multiproc",
}
"""Name in engine_init_kwargs -> where an author sets it instead. The other names have no such place."""


@check(
    "CTX-07",
    "engine_init_kwargs leaves the managed names alone",
    area="context",
    rule="engine_init_kwargs holds none of the names that the trainer passes to the engine itself",
    prevents="The launcher refuses the document: the engine would get the argument twice.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-07 (#80), contract runtime-facts.md §5; the launcher",
)
def ctx_07(subject: PreflightSubject) -> Iterator[Finding]:
    forbidden = subject.manifest().engine_init_kwargs_forbidden
    written = subject.get(f"skyrl.{_KWARGS}")
    if subject.planned is None and not isinstance(written, dict):
        return
    for name in forbidden:
        found = declaration(subject, f"{_KWARGS}.{name}")
        if found is not None:
            proper = _PROPER_PATHS.get(name)
            advice = f"Use {proper}" if proper else "Leave it out"
            yield Finding(
                path=f"skyrl.{_KWARGS}.{name}",
                message=f"{found.where}engine_init_kwargs.{name}={found.written}: SkyRL sets it. {advice}",
                repair=found.repair,
            )


@check(
    "CTX-12",
    "engine modes go together",
    area="context",
    rule="HTTP endpoint: async_engine true and not sglang; engine PP > 1: async_engine true; vLLM with async_engine "
    "false: batched true; batched: no step_wise_training, no chat_template_kwargs",
    prevents="The trainer refuses the document.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-12 (#85), failure row 22 (SkyRL#555); the trainer",
)
def ctx_12(subject: PreflightSubject) -> Iterator[Finding]:
    backend, asynchronous_engine = subject.text(_BACKEND), subject.flag(_ASYNC)
    http, pipeline = subject.flag(_HTTP), Geometry.of(subject).engine_pp
    if subject.flag(_BATCHED):
        yield from _batched_problems(subject)
    if http and backend == "sglang":
        yield Finding(
            path=_HTTP,
            message="enable_http_endpoint is true, which backend sglang does not support",
            repair=set_to(_HTTP, False),
        )
    if asynchronous_engine:
        return
    if http:
        yield Finding(
            path=_ASYNC,
            message="enable_http_endpoint needs async_engine: true",
            repair=set_to(_ASYNC, True),
        )
    if pipeline > 1:
        yield Finding(
            path=_ASYNC,
            message=f"engine PP={pipeline} needs async_engine: true",
            repair=set_to(_ASYNC, True),
        )
    if not http and pipeline == 1 and backend == "vllm" and not subject.flag(_BATCHED):
        yield Finding(
            path=_BATCHED,
            message="async_engine: false needs batched: true",
            repair=set_to(_BATCHED, True),
        )


def _batched_problems(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.get(_STEP_WISE) is True:
        yield Finding(
            path=_BATCHED,
            message="step_wise_training generates answer by answer: batched is true",
            repair=also(set_to(_BATCHED, False), set_to(_ASYNC, True)),
            severity="warning",
        )
    if subject.get(_TEMPLATE_KWARGS):
        yield Finding(
            path=_TEMPLATE_KWARGS,
            message="chat_template_kwargs do not reach the engine where batched is true",
            repair=delete(_TEMPLATE_KWARGS),
            severity="warning",
        )


@check(
    "CTX-24",
    "weights change under running requests only where that works",
    area="context",
    rule="asynchronous training with pause_mode keep: the runtime lists the back end and the GPU variant",
    prevents="An error at start, or answers of two policies.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-24 (new); nobody checks it",
)
def ctx_24(subject: PreflightSubject) -> Iterator[Finding]:
    if not asynchronous(subject) or subject.text(_PAUSE) != "keep":
        return
    modes = subject.manifest().in_flight_weight_update
    if modes is None:
        raise MissingFact("in_flight_weight_update in the runtime manifest")
    backend, variant = subject.text(_BACKEND), subject.text(_VARIANT)
    if variant not in modes.get(backend, ()):
        yield Finding(
            path=_PAUSE,
            message=f"pause_mode keep changes weights under running requests, which is not available with {backend} "
            f"on {variant}",
            repair=set_to(_PAUSE, "abort"),
        )


@check(
    "CTX-25",
    "every remote engine has an address",
    area="context",
    rule="run_engines_locally false: num_inference_engines == number of remote_inference_engine_urls",
    prevents="The trainer refuses the document.",
    inputs=("spec", "runtime"),
    source="MarinSkyRL skyrl_train/utils/utils.py@004e15f9; the trainer",
    implied_by=("BKD-36",),
)
def ctx_25(subject: PreflightSubject) -> Iterator[Finding]:
    if subject.flag(_LOCAL):
        return
    urls, engines = len(subject.value(_URLS, list)), Geometry.of(subject).engines
    if urls != engines:
        yield Finding(
            path=_ENGINES,
            message=f"num_inference_engines={engines}, but remote_inference_engine_urls has {counted(urls, 'URL')}",
            repair=set_to(_ENGINES, urls) if urls else "list the addresses of the engines",
        )


_ENGINE_LIMITS = (
    Limit("generator.max_num_seqs", AT_LEAST_ONE, 1024),
    Limit("generator.max_num_batched_tokens", AT_LEAST_ONE, 8192),
    Limit("generator.http_endpoint_port", PORT, 8000),
    Limit("generator.eval_n_samples_per_prompt", AT_LEAST_ONE, 1),
)


@check(
    "CTX-26",
    "engine settings are in range",
    area="context",
    rule="; ".join(f"{limit.path} {limit.bounds}" for limit in _ENGINE_LIMITS),
    prevents="The engine does not start.",
    inputs=("spec",),
    source="vLLM's own checks of its arguments; nobody checks it before",
)
def ctx_26(subject: PreflightSubject) -> Iterator[Finding]:
    yield from out_of_bounds(subject, _ENGINE_LIMITS)


CHECKS = (ctx_07, ctx_12, ctx_24, ctx_25, ctx_26)
