"""Speculative decoding: a draft model proposes tokens that the policy's engine confirms."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from tools.launcher.catalog.cards import MissingFact
from tools.launcher.preflight.bounds import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, Bounds
from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.geometry import Geometry
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, delete, listed, set_to, shown

_BLOCK = "skyrl.generator.speculative_decoding"
_METHOD = f"{_BLOCK}.method"
_TOKENS = f"{_BLOCK}.num_speculative_tokens"
_TRAINING = f"{_BLOCK}.training"
_URI = f"{_BLOCK}.model.source_uri"
_IDENTITY = f"{_BLOCK}.model.source_identity"
_SCHEDULING = "skyrl.generator.engine_init_kwargs.async_scheduling"

_COMMIT = re.compile(r"[0-9a-f]{40}")
_OBJECT_STORES = ("s3://", "gs://", "gcs://")
_NO_REPOSITORY = ("::", "\\")
"""What no name of a repository on the Hub contains."""
_FRACTION = Bounds(low=0, high=1, open_low=True, open_high=True)

_TRAINING_NUMBERS = {
    "interval_steps": AT_LEAST_ONE,
    "max_tokens_per_update": AT_LEAST_ONE,
    "max_window_tokens": AT_LEAST_ONE,
    "max_tokens_per_micro_batch": AT_LEAST_ONE,
    "max_sequences_per_prompt_group": AT_LEAST_ONE,
    "min_train_sequences": AT_LEAST_ONE,
    "holdout_fraction": _FRACTION,
    "min_holdout_sequences": AT_LEAST_ONE,
    "epochs_per_update": AT_LEAST_ONE,
    "learning_rate": POSITIVE,
    "max_validation_loss_increase": NOT_NEGATIVE,
    "max_validation_agreement_decrease": NOT_NEGATIVE,
    "reserved_gpu_memory_gib": POSITIVE,
}
"""Field of `training` -> what it may be; all of them have defaults."""


@check(
    "CTX-14",
    "the draft model can serve and train",
    area="context",
    rule="speculative_decoding: known fields, a method, a draft model with an immutable identity, local vLLM, "
    "colocate_all false; with training: entry point standard, one engine, TP=PP=1, async_engine, no async_scheduling",
    prevents="The launcher refuses the document.",
    inputs=("spec", "runtime"),
    source="catalogue CTX-14 (#87), MarinSkyRL marinskyrl/speculative_decoding.py@06d8e744; the launcher",
)
def ctx_14(subject: PreflightSubject) -> Iterator[Finding]:
    block = subject.get(_BLOCK)
    if block is None:
        return
    if not isinstance(block, dict) or not block:
        problem = "empty" if block == {} else f"{shown(block)}, not a mapping"
        yield Finding(path=_BLOCK, message=f"speculative_decoding is {problem}", repair=delete(_BLOCK))
        return
    yield from _method_problems(subject)
    yield from _model_problems(subject)
    yield from _serving_problems(subject)
    if subject.has(_TRAINING):
        yield from _training_problems(subject)
    yield from _unknown_fields(subject)


def _unknown_fields(subject: PreflightSubject) -> Iterator[Finding]:
    known = subject.manifest().speculative_fields
    if known is None:
        raise MissingFact("speculative_fields in the runtime manifest")
    for name, fields in known.items():
        place = f"{_BLOCK}.{name}" if name else _BLOCK
        content = subject.get(place)
        for field in sorted(set(content) - set(fields), key=str) if isinstance(content, dict) else ():
            yield Finding(
                path=below(place, field),
                message=f"{place.removeprefix('skyrl.generator.')} has no field {shown(field)}. Its fields: "
                f"{listed(fields)}",
                repair=delete(below(place, field)),
            )


def _method_problems(subject: PreflightSubject) -> Iterator[Finding]:
    methods = subject.manifest().recipe_enums.get("generator.speculative_decoding.method")
    method = subject.get(_METHOD)
    if method is None or (methods is not None and method not in methods):
        known = methods or ("eagle3",)
        yield Finding(
            path=_METHOD,
            message=f"speculative_decoding.method is {shown(method)}. Known: {listed(known)}",
            repair=set_to(_METHOD, *known),
        )
    tokens = subject.get(_TOKENS)
    if type(tokens) is not int or tokens < 1:
        yield Finding(
            path=_TOKENS,
            message=f"num_speculative_tokens must be a positive integer, got {shown(tokens)}",
            repair=set_to(_TOKENS, 3),
        )


def _model_problems(subject: PreflightSubject) -> Iterator[Finding]:
    model = subject.get(f"{_BLOCK}.model")
    if not isinstance(model, dict):
        yield Finding(
            path=f"{_BLOCK}.model",
            message=f"speculative_decoding.model is {shown(model)}, not a mapping with source_uri and source_identity",
            repair="write source_uri and source_identity of the draft model",
        )
        return
    uri, identity = subject.get(_URI), subject.get(_IDENTITY)
    if not isinstance(identity, str) or not identity.strip():
        yield Finding(
            path=_IDENTITY,
            message=f"the draft model needs a source_identity, got {shown(identity)}",
            repair="write the identity of the draft model: name@version:fingerprint, or a commit of 40 hex digits",
        )
    problem = _locator_problem(uri)
    if problem is not None:
        yield Finding(path=_URI, message=f"draft source_uri {shown(uri)} {problem}", repair=_LOCATORS)
    elif urlsplit(uri).scheme == "hf" and isinstance(identity, str) and not _COMMIT.fullmatch(identity):
        yield Finding(
            path=_IDENTITY,
            message=f"draft source_identity {shown(identity)} is not a full commit (40 lower-case hex digits): it "
            "moves",
            repair=f"look the commit of {shown(uri)} up once and write it",
        )


_LOCATORS = "write hf://namespace/repository, or s3://bucket/path (gs, gcs)"


def _locator_problem(uri: Any) -> str | None:
    """Return what is wrong with the address of a draft model."""
    if not isinstance(uri, str) or not uri:
        return "is no address"
    try:
        parts = urlsplit(uri)
    except ValueError:  # brackets that are no IPv6 address
        return "is no address"
    if parts.scheme == "hf":
        whole = _is_repository(f"{parts.netloc}{parts.path}") and not parts.query and not parts.fragment
        return None if whole else "is not of the form hf://namespace/repository"
    if not uri.startswith(_OBJECT_STORES):
        return "must use hf, s3, gs or gcs"
    whole = bool(parts.netloc and parts.path.strip("/")) and not parts.query and not parts.fragment
    return None if whole else "is not a complete address in an object store"


def _is_repository(text: str) -> bool:
    """Whether the text is a repository id as the launcher reads one (marinskyrl/resource_locator.py@0f08e891)."""
    names = [name.strip() for name in text.split("/")]
    plain = not any(part in text for part in _NO_REPOSITORY) and not text.startswith("~")
    return len(names) == 2 and plain and all(name not in ("", ".", "..") for name in names)


def _serving_problems(subject: PreflightSubject) -> Iterator[Finding]:
    for path, wanted in (
        ("generator.backend", "vllm"),
        ("generator.run_engines_locally", True),
        ("trainer.placement.colocate_all", False),
    ):
        yield from _needs(subject, path, wanted, "speculative_decoding")


def _training_problems(subject: PreflightSubject) -> Iterator[Finding]:
    what = "speculative_decoding.training"
    training = subject.get(_TRAINING)
    if not isinstance(training, dict):
        yield Finding(
            path=_TRAINING, message=f"{what} is {shown(training)}, not a mapping", repair=delete(_TRAINING)
        )
        return
    entrypoint = subject.entrypoint
    if entrypoint != "standard":
        yield Finding(
            path=_TRAINING,
            message=f"{what} needs the entry point standard, got {entrypoint}",
            repair=delete(_TRAINING),
        )
    geometry = Geometry.of(subject)
    for path, value in (
        ("num_inference_engines", geometry.engines),
        ("inference_engine_tensor_parallel_size", geometry.engine_tp),
        ("inference_engine_pipeline_parallel_size", geometry.engine_pp),
    ):
        if value != 1:
            yield Finding(
                path=f"skyrl.generator.{path}",
                message=f"{what} needs {path}=1, got {value}",
                repair=set_to(f"skyrl.generator.{path}", 1),
            )
    yield from _needs(subject, "generator.async_engine", True, what)
    if subject.get(_SCHEDULING):
        yield Finding(
            path=_SCHEDULING,
            message=f"{what} does not go with engine_init_kwargs.async_scheduling",
            repair=set_to(_SCHEDULING, False),
        )
    for name, bounds in _TRAINING_NUMBERS.items():
        path = f"{_TRAINING}.{name}"
        number: Any = training.get(name)
        kinds = (int,) if bounds is AT_LEAST_ONE else (int, float)
        if name in training and (type(number) not in kinds or not bounds.holds(number)):
            yield Finding(
                path=path,
                message=f"{what}.{name}={shown(number)} must be {'an integer ' if kinds == (int,) else ''}{bounds}",
                repair=delete(path),
            )


def _needs(subject: PreflightSubject, path: str, wanted: str | bool, what: str) -> Iterator[Finding]:
    value = subject.value(f"skyrl.{path}", type(wanted))
    if value != wanted:
        yield Finding(
            path=f"skyrl.{path}",
            message=f"{what} needs {path.rpartition('.')[2]}: {_plain(wanted)}, got {_plain(value)}",
            repair=set_to(f"skyrl.{path}", wanted),
        )


def _plain(value: str | bool) -> str:
    return value if isinstance(value, str) else shown(value)


CHECKS = (ctx_14,)
