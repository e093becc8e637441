"""Secrets: their names may be declared, their values are nowhere. No message of this module holds a value."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.checks.execution.reading import (
    bare,
    declared_credentials,
    filled,
    is_embedded,
    rl_steps,
    runs_agents,
    runtime_fact,
)
from tools.launcher.preflight.checks.execution.variables import as_text, set_variables
from tools.launcher.preflight.findings import Finding, Reminder
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, listed, shown

_CREDENTIALS = "execution.credentials"
_ENTITY = "iris.wandb_entity"
_LOGGER = "skyrl.trainer.logger"
_WANDB_KEY = "WANDB_API_KEY"

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)\Z", re.IGNORECASE)
_NO_SECRET = re.compile(r"\s*|[01]|true|false|yes|no|on|off|none|null", re.IGNORECASE)
"""Values of switches, whatever they are called."""

_TOKENS = {
    "a Hugging Face token": r"hf_[A-Za-z0-9]{30,}",
    "an API key": r"sk-(?:ant-|proj-)?[A-Za-z0-9_]{20}[A-Za-z0-9_-]{10,}",
    "a GitHub token": r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}",
    "an AWS access key": r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    "a Google API key": r"AIza[0-9A-Za-z_-]{35}",
    "a Slack token": r"xox[abprs]-[0-9A-Za-z-]{20,}",
    "a Daytona key": r"dtn_[0-9a-f]{40,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
_TOKEN = re.compile(
    "|".join(
        f"(?P<t{index}>(?<![A-Za-z0-9_-])(?:{pattern})(?![A-Za-z0-9]))"
        for index, pattern in enumerate(_TOKENS.values())
    )
)
_LONGEST_SEARCHED = 100_000
"""Characters of one text; no setting is longer."""

_CREDENTIAL_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)
_LONGEST_NAME = 64


def _looks_like_a_token(text: str) -> str | None:
    """What kind of secret the text holds, None if none is recognised."""
    match = _TOKEN.search(text[:_LONGEST_SEARCHED])
    if match is None or match.lastgroup is None:
        return None
    return list(_TOKENS)[int(match.lastgroup[1:])]


def _holds_a_secret(name: str, value: Any) -> bool:
    """Whether the name says so, and the value is no switch."""
    if isinstance(value, bool | list | dict) or _SECRET_NAME.search(name) is None:
        return False
    return not isinstance(value, str) or _NO_SECRET.fullmatch(value) is None


@check(
    "EXE-25",
    "no secret is in the environment of the tasks",
    area="execution",
    rule="no name in extra_env or task_env ends in KEY, TOKEN, SECRET or PASSWORD",
    prevents="The value is stored in the fingerprinted document and in object storage.",
    inputs=("spec",),
    source="catalogue EXE-25 (new); nobody checks it",
)
def exe_25(subject: PreflightSubject) -> Iterator[Finding]:
    for variable in set_variables(subject):
        if _holds_a_secret(variable.name, variable.value):
            yield Finding(
                path=variable.paths[0],
                message=f"{shown(variable.name)} looks like a secret, and its value would be stored with the document. "
                "Forward it through the coordinator",
                repair=variable.deletion,
            )


@check(
    "EXE-38",
    "no secret is anywhere in the document",
    area="execution",
    rule="no text has the form of a token or a private key",
    prevents="The value is stored in the fingerprinted document and in object storage.",
    inputs=("spec",),
    source="EXE-25 for the rest of the document; nobody checks it",
)
def exe_38(subject: PreflightSubject) -> Iterator[Finding]:
    # Each text once: an alias can put one into thousands of places. Paths only where something is found.
    kinds = {text: _looks_like_a_token(text) for text in _texts_of(subject.document)}
    secrets = {text: kind for text, kind in kinds.items() if kind is not None}
    if not secrets:
        return
    told = {
        path
        for item in set_variables(subject)
        if _holds_a_secret(item.name, item.value)
        for path in item.paths
    }
    for path, text in _texts(subject.document):
        if text in secrets and path not in told:
            yield Finding(
                path=path,
                message=f"{path} holds what looks like {secrets[text]}; it would be stored with the document",
                repair="take the value out, revoke it, and forward the secret by its name",
            )


def _texts_of(value: Any) -> set[str]:
    """Every text of the document."""
    texts: set[str] = set()
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return texts


def _texts(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every text of the document; the reader bounds how many there are."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            waiting += [(below(path, name) if path else str(name), item) for name, item in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", item) for index, item in enumerate(value)]


def _declares(credentials: Sequence[str]) -> str:
    what = f"the credentials {listed(credentials)}" if credentials else "no credentials"
    return f"the execution declares {what}"


@check(
    "EXE-12",
    "metrics reach the entity that was meant",
    area="execution",
    rule=f"logger wandb: {_WANDB_KEY} is among the declared credentials, and wandb_entity is set",
    prevents="The trainer stops without the key; without an entity metrics go where the launch host's WANDB_ENTITY says.",
    inputs=("spec", "runtime"),
    source="catalogue EXE-12 (#111), contract runtime-facts.md §13; the trainer for the key, nobody for the entity",
)
def exe_12(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    if not logs_to_wandb(subject):
        return
    credentials = declared_credentials(subject)
    if credentials is None:
        yield Reminder(message=f"{_WANDB_KEY} must be forwarded: trainer.logger is wandb")
    elif _WANDB_KEY not in credentials:
        yield Finding(
            path=_CREDENTIALS,
            message=f"trainer.logger is wandb, which needs {_WANDB_KEY}; {_declares(credentials)}",
            repair=f"add {_WANDB_KEY} to the credentials of the execution",
        )
    if filled(subject, _ENTITY) is None:
        fallback = runtime_fact(subject, "wandb_entity_fallback")
        yield Finding(
            path=_ENTITY,
            message=f"wandb_entity is {shown(subject.get(_ENTITY))}: metrics would go to the WANDB_ENTITY of the launch host, "
            f"else to {shown(fallback)}",
            repair=f"write your entity in {_ENTITY}",
            severity="warning",
        )


def logs_to_wandb(subject: PreflightSubject) -> bool:
    """Whether the trainer sends metrics to Weights & Biases. Raises like `PreflightSubject.value`."""
    logger = subject.value(_LOGGER, str, list)
    if logger != "wandb" and not (isinstance(logger, list) and "wandb" in logger):
        return False
    modes = {as_text(item.value).lower() for item in set_variables(subject) if item.name == "WANDB_MODE"}
    return not modes & {"offline", "disabled", "dryrun"}


@check(
    "EXE-11",
    "who launches can log in",
    area="execution",
    rule="agentic recipe: DAYTONA_RL_API_KEY is among the declared credentials, or a gcloud login exists; the hub's login "
    "is on the checklist",
    prevents="The launcher refuses it, or the sandboxes cannot be reached.",
    inputs=("spec", "cluster", "runtime"),
    source="catalogue EXE-11 (#110); the launcher, late",
)
def exe_11(subject: PreflightSubject) -> Iterator[Finding | Reminder]:
    if is_embedded(subject):
        return
    hub = filled(subject, "iris.parent_cluster_config") or filled(subject, "iris.cluster_config")
    if hub is not None:
        yield Reminder(
            message=f"be logged in to {bare(hub.rpartition('/')[2].removesuffix('.yaml'))}, which takes the job"
        )
    if not runs_agents(subject):
        return
    names = runtime_fact(subject, "sandbox_credentials")
    credentials = declared_credentials(subject)
    if credentials is None:
        yield Reminder(
            message=f"agentic recipe: {listed(names)} must be forwarded, or the host have a gcloud login"
        )
    elif not set(names) & set(credentials):
        yield Finding(
            path=_CREDENTIALS,
            message=f"agentic recipe: {listed(names)} is needed; {_declares(credentials)}, so only a gcloud login of the "
            "host is left",
            repair=f"add {names[0]} to the credentials of the execution",
            severity="warning",
        )


@check(
    "EXE-37",
    "credentials are declared by name",
    area="execution",
    rule="a credential is the name of a variable in upper case, and none of the pod's own (AWS_*, R2_*)",
    prevents="A secret gets into the repository; or the pod's own credentials are replaced.",
    inputs=("spec", "runtime"),
    source="contract runtime-facts.md §12 (forwarded, never forwarded); nobody checks it",
)
def exe_37(subject: PreflightSubject) -> Iterator[Finding]:
    steps = rl_steps(subject)
    for step, payload in steps:
        for index, name in enumerate(payload.execution.credentials or ()):
            place = f"credentials[{index}] of {step.address}"
            if (
                _CREDENTIAL_NAME.fullmatch(name) is None
                or len(name) > _LONGEST_NAME
                or _looks_like_a_token(name)
            ):
                yield Finding(
                    path=_CREDENTIALS,
                    message=f"{place} is not a name such as {_WANDB_KEY} ({len(name)} characters, not shown here: it may be "
                    "the secret itself)",
                    repair="write the name of the variable that holds the secret",
                )
            elif name.startswith(runtime_fact(subject, "reserved_variables").pod_credential_prefixes):
                yield Finding(
                    path=_CREDENTIALS,
                    message=f"{place} is {name}: it would replace what the pod has for its storage",
                    repair=f"remove {name} from the credentials of the execution",
                )


CHECKS = (exe_11, exe_12, exe_25, exe_37, exe_38)
