"""The four facts that make a run verified, each read from what the run itself left behind."""

import hashlib
import itertools
import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.iris.jobs import JobFacts
from tools.launcher.observe.evidence import Unreadable, list_ranks, ranks_in, read_object
from tools.launcher.observe.run_files import RunFiles
from tools.launcher.observe.safetensors_header import TornFile, read_safetensors_header
from tools.launcher.observe.training_steps import training_steps
from tools.launcher.store.locations import ObjectRoot


class Fact(BaseModel):
    """One condition of a verified run.

    Attributes:
        name: tasks_joined, model_loaded_as_declared, optimizer_steps_advanced or terminal_artifacts_exist.
        ok: whether it holds.
        expected: what the plan promises.
        seen: what was found; where `ok` is false, what differs.
        evidence: URIs and job ids it was read from.
        is_known: False if `ok` is false only because something could not be read. Not recorded: see
            `Verification.is_known`.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    name: str
    ok: bool
    expected: str
    seen: str
    evidence: tuple[str, ...]
    is_known: bool = Field(default=True, exclude=True)


def tasks_joined(files: RunFiles, attempt_uri: str, root: ObjectRoot, child: JobFacts | None) -> Fact:
    """All expected tasks joined the rendezvous before the first step."""
    uri, count = f"{attempt_uri}/joined", files.num_nodes
    ranks = ranks_in(root.path(uri))
    missing = [rank for rank in range(count) if rank not in ranks]
    strange = [rank for rank in ranks if rank >= count]
    problems = []
    if missing:
        problems.append(f"missing ranks: {list_ranks(missing)}")
    if strange:
        problems.append(f"unexpected ranks: {list_ranks(strange)}")
    for rank in ranks:
        try:
            joined = read_object(root, f"{uri}/{rank}.json")
        except Unreadable as error:
            problems.append(str(error))
            continue
        for field, wanted in (("rank", rank), ("world_size", count), ("at_step", 0)):
            if joined.get(field) != wanted:
                problems.append(f"{rank}.json has {field} {joined.get(field)!r}, not {wanted}")
    evidence = [f"{uri}/"]
    if child is not None:
        evidence.append(f"job {child.job_id}")
        if len(child.tasks) != count:
            problems.append(f"the child job has {len(child.tasks)} tasks")
    return Fact(
        name="tasks_joined",
        ok=not problems,
        expected=f"{count} tasks, ranks {list_ranks(range(count))}",
        seen="; ".join([f"ranks {list_ranks(ranks)}", *problems]),
        evidence=tuple(evidence),
    )


def model_loaded_as_declared(files: RunFiles, attempt_uri: str, root: ObjectRoot) -> Fact:
    """Every task loaded the declared model through the declared path, and all loaded the same bytes."""
    uri = f"{attempt_uri}/model_load"
    declared = {
        "declared_path": files.model_local_path,
        "source_uri": files.model_uri,
        "identity": files.model_identity,
        "tokenizer_revision": files.tokenizer_revision,
    }
    problems, digests = [], {}
    for rank in range(files.num_nodes):
        try:
            loaded = read_object(root, f"{uri}/{rank}.json")
        except Unreadable as error:
            problems.append(str(error))
            continue
        problems += [
            f"rank {rank} has {field} {loaded.get(field)!r}"
            for field, wanted in {"rank": rank, **declared}.items()
            if loaded.get(field) != wanted
        ]
        digests[rank] = loaded.get("weights_sha256")
    evidence = [f"{uri}/"]
    distinct = sorted({str(digest) for digest in digests.values()})
    if len(distinct) > 1:
        problems.append(
            f"the ranks loaded {len(distinct)} different weights: {', '.join(d[:12] for d in distinct)}"
        )
    source = f"{files.model_uri}/model.safetensors"
    stored = root.path(source)
    if len(distinct) == 1 and stored.is_file():
        evidence.append(source)
        at_source = _sha256_of(stored)
        if at_source != distinct[0]:
            problems.append(f"the loaded weights have sha256 {distinct[0][:12]}, the source {at_source[:12]}")
    weights = f", weights sha256 {distinct[0][:12]}" if len(distinct) == 1 else ""
    return Fact(
        name="model_loaded_as_declared",
        ok=not problems,
        expected=(
            f"{files.model_identity} from {files.model_uri} through {files.model_local_path} on every task"
        ),
        seen="; ".join(problems) or f"{len(digests)} of {files.num_nodes} tasks so{weights}",
        evidence=tuple(evidence),
    )


def optimizer_steps_advanced(files: RunFiles, attempt_id: str, root: ObjectRoot) -> Fact:
    """The optimizer made every step of the plan, one after the other, and the weights moved."""
    metrics = training_steps(files, attempt_id, root)
    evidence = list(metrics.sources)
    problems = [metrics.problem] if metrics.problem else []
    steps = [line["step"] for line in metrics.lines]
    if not steps:
        problems.append("0 optimizer steps")
    elif steps != list(range(steps[0], steps[0] + len(steps))):
        problems.append(f"the steps do not follow each other: {', '.join(map(str, steps[:12]))}")
    elif files.max_steps is not None and steps[-1] != files.max_steps:
        problems.append(f"the last step is {steps[-1]}")
    for field in ("reward_mean", "loss"):
        strange = [line["step"] for line in metrics.lines if not _is_finite(line.get(field))]
        if strange:
            problems.append(f"{field} is not a finite number at step {strange[0]}")
    updates = [
        line["optimizer_updates"] for line in metrics.lines if type(line.get("optimizer_updates")) is int
    ]
    if any(later <= earlier for earlier, later in itertools.pairwise(updates)):
        problems.append(f"the optimizer's update count does not rise: {', '.join(map(str, updates[:12]))}")
    if steps:
        problems += _weights_moved(files, files.attempt_uri(attempt_id), steps[-1], root, evidence)
    expected = "at least 1 step" if files.max_steps is None else f"{files.max_steps} steps"
    seen = problems
    if not problems:
        first, last = metrics.lines[0], metrics.lines[-1]
        rewards = f"reward {first['reward_mean']:.3f} to {last['reward_mean']:.3f}"
        own_from = steps[-1] + 1 if metrics.own_from is None else metrics.own_from
        resumed = f" (resumed after step {own_from - 1})" if own_from > 1 else ""
        seen = [f"steps {steps[0]} to {steps[-1]}{resumed}, {rewards}, weights changed"]
    return Fact(
        name="optimizer_steps_advanced",
        ok=not problems,
        expected=f"{expected}, weights other than the loaded ones",
        seen="; ".join(seen),
        evidence=tuple(evidence),
    )


def terminal_artifacts_exist(
    files: RunFiles, attempt_id: str, root: ObjectRoot, *, recorded_state: str
) -> tuple[Fact, dict[str, Any]]:
    """Manifest, attempt record, resolved document, checkpoint and export exist, are whole and agree.

    Returns:
        the fact, and the terminal manifest ({} if there is none).
    """
    problems = [] if recorded_state == "succeeded" else [f"the run's record says {recorded_state}"]
    attempt_record = f"{files.attempt_uri(attempt_id)}.json"
    evidence = [files.terminal_manifest_uri, attempt_record, files.resolved_config_uri]
    manifest: dict[str, Any] = {}
    step: Any = None
    try:
        manifest = read_object(root, files.terminal_manifest_uri)
        step = manifest.get("global_step")
        wanted: dict[str, Any] = {
            "run_id": files.run_id,
            "attempt_id": attempt_id,
            "task_count": files.num_nodes,
        }
        if files.max_steps is not None:
            wanted["global_step"] = files.max_steps
        problems += [
            f"the manifest has {field} {manifest.get(field)!r}, not {value!r}"
            for field, value in wanted.items()
            if manifest.get(field) != value
        ]
    except Unreadable as error:
        problems.append(str(error))
    try:
        attempt = read_object(root, attempt_record)
        if attempt.get("state") != "succeeded":
            problems.append(f"the attempt's record says {attempt.get('state')!r}")
    except Unreadable as error:
        problems.append(f"attempt record {error}")
    problems += _resolved_document_problems(files, attempt_id, root)
    if type(step) is int:
        checkpoint, export = (
            f"{files.checkpoint_root}/global_step_{step}",
            f"{files.export_root}/global_step_{step}",
        )
        evidence.append(f"{checkpoint}/")
        problems += _checkpoint_problems(files, checkpoint, step, manifest, root)
        if files.export_hf:
            evidence.append(f"{export}/")
            problems += _export_problems(export, manifest, root)
    elif manifest:
        problems.append(f"the manifest's global_step is {step!r}, so no checkpoint can be looked for")
    parts = [
        "manifest",
        "attempt record",
        "resolved document",
        "checkpoint",
        *(["export"] if files.export_hf else []),
    ]
    fact = Fact(
        name="terminal_artifacts_exist",
        ok=not problems,
        expected=f"whole {', '.join(parts)} of attempt {attempt_id}",
        seen="; ".join(problems) or f"all of them, at step {step}",
        evidence=tuple(evidence),
    )
    return fact, manifest


def _weights_moved(
    files: RunFiles, attempt_uri: str, step: int, root: ObjectRoot, evidence: list[str]
) -> list[str]:
    """Compare the final weights with the ones rank 0 loaded."""
    final = f"{files.checkpoint_root}/global_step_{step}/policy.safetensors"
    try:
        loaded = read_object(root, f"{attempt_uri}/model_load/0.json").get("weights_sha256")
        trained = _sha256_of(root.path(final))
    except (Unreadable, OSError):
        # Which of the two is missing is the finding of the fact about it.
        return ["the weights cannot be compared with the loaded ones"]
    evidence.append(final)
    return ["the weights are those that were loaded: nothing was learned"] if trained == loaded else []


def _resolved_document_problems(files: RunFiles, attempt_id: str, root: ObjectRoot) -> list[str]:
    """Check that the document as run is there and is this attempt's."""
    name = files.resolved_config_uri.rsplit("/", 1)[-1]
    try:
        run = load_yaml_mapping(root.path(files.resolved_config_uri).read_bytes(), source=name).get("run")
    except FileNotFoundError:
        return [f"{name} is missing"]
    except OSError as error:
        return [f"{name} cannot be read: {error.strerror}"]
    except DocumentError as error:
        return [f"{error}"]
    seen = run if isinstance(run, dict) else {}
    return [
        f"{name} has run.{field} {seen.get(field)!r}, not {wanted!r}"
        for field, wanted in (("id", files.run_id), ("attempt_id", attempt_id))
        if seen.get(field) != wanted
    ]


def _checkpoint_problems(
    files: RunFiles, uri: str, step: int, manifest: dict[str, Any], root: ObjectRoot
) -> list[str]:
    problems = _manifest_names(manifest, "checkpoint", uri)
    problems += _tensor_file_problems(root, f"{uri}/policy.safetensors", "checkpoint")
    try:
        state = read_object(root, f"{uri}/trainer_state.json")
        if state.get("global_step") != step:
            problems.append(f"trainer_state.json has global_step {state.get('global_step')!r}, not {step}")
        for name in ("policy", "optimizer"):
            promised, path = state.get(f"{name}_sha256"), root.path(f"{uri}/{name}.safetensors")
            if promised is not None and not path.is_file():
                problems.append(f"checkpoint {path.name} is missing, which trainer_state.json names")
            elif promised is not None and _sha256_of(path) != promised:
                problems.append(f"checkpoint {path.name} has another digest than trainer_state.json says")
    except Unreadable as error:
        problems.append(f"checkpoint {error}")
    latest = root.path(f"{files.checkpoint_root}/latest_ckpt_global_step.txt")
    text = latest.read_text(errors="replace").strip() if latest.is_file() else "nothing"
    if text != str(step):
        problems.append(f"latest_ckpt_global_step.txt says {text!r}, not {step}")
    return problems


def _export_problems(uri: str, manifest: dict[str, Any], root: ObjectRoot) -> list[str]:
    if not root.path(uri).is_dir():
        return [f"the export {uri} is missing"]
    problems = _manifest_names(manifest, "export", uri)
    problems += _tensor_file_problems(root, f"{uri}/model.safetensors", "export")
    for name in ("config.json", "tokenizer_config.json"):
        try:
            read_object(root, f"{uri}/{name}")
        except Unreadable as error:
            problems.append(f"export {error}")
    return problems


def _manifest_names(manifest: dict[str, Any], field: str, uri: str) -> list[str]:
    named = manifest.get(field)
    return [] if named == uri else [f"the manifest names the {field} {named!r}, not {uri}"]


def _tensor_file_problems(root: ObjectRoot, uri: str, what: str) -> list[str]:
    name = uri.rsplit("/", 1)[-1]
    try:
        read_safetensors_header(root.path(uri))
    except FileNotFoundError:
        return [f"{what} {name} is missing"]
    except OSError as error:
        return [f"{what} {name} cannot be read: {error.strerror}"]
    except TornFile as error:
        return [f"{what} {name} is torn: {error}"]
    return []


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
