"""The four facts of a run of the MarinSkyRL runtime, from the scheduler and from what the runtime left.

The runtime writes no files of evidence for others to read, as the rehearsal does. What it does leave is
enough: see `marinskyrl_files` for the forms, and each fact for why they prove it.
"""

import re
from collections import Counter
from typing import Any, Final

from tools.launcher.iris.jobs import JobFacts
from tools.launcher.observe.evidence import Unreadable
from tools.launcher.observe.facts import Fact
from tools.launcher.observe.marinskyrl_files import (
    LATEST_FILE,
    Reader,
    Unknown,
    exported_policy,
    latest_step,
    resolved_document,
    result_at,
)
from tools.launcher.observe.run_files import RunFiles

_OBJECT_STORAGE: Final = ("s3://", "gs://", "gcs://")

# Where later runtimes stage configuration and tokenizer of weights that they stream from `source_uri`
# (cloud/iris/task_runtime.py@006eddce, `_metadata_path` and `_write_final_config`).
_STAGED_METADATA: Final = re.compile(r"/(?:[^/]+/)*marinskyrl/model_metadata/[^/]+")

_WEIGHTS: Final = ("model.safetensors", "pytorch_model.bin")
_TOKENIZER: Final = ("tokenizer_config.json", "tokenizer.json", "tokenizer.model")

_SHOWN_SHARDS: Final = 3


class Findings:
    """What speaks against a fact, and what could not be told.

    Attributes:
        problems: found to be otherwise.
        unknown: could not be read.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.unknown: list[str] = []

    def add(self, error: Unreadable | Unknown, what: str = "") -> None:
        """Note an error, of `what` if its text does not say so."""
        if isinstance(error, Unknown):
            self.unknown.append(str(error))
        else:
            self.problems.append(f"{what} {error}".lstrip())

    def fact(self, name: str, expected: str, seen: str, evidence: list[str]) -> Fact:
        """Return the fact, which is known also where something could not be read, if something else denies it."""
        unknown = [f"unknown: {reason}" for reason in dict.fromkeys(self.unknown)]
        said = "; ".join([*self.problems, *unknown]) or seen
        return Fact(
            name=name,
            ok=not self.problems and not unknown,
            expected=expected,
            seen=said,
            evidence=tuple(dict.fromkeys(evidence)),
            is_known=not unknown or bool(self.problems),
        )


def tasks_joined(
    files: RunFiles, attempt_id: str, reader: Reader, child: JobFacts | None, unasked: str
) -> Fact:
    """All expected tasks joined before the first step.

    Task 0 starts the training driver once all nodes have joined, and every other task ends well only after
    that driver has: tasks that all succeeded had joined. Where the scheduler no longer tells, the runtime's
    own rendezvous does, and for a gang of one the document that its driver wrote.

    Args:
        files: the plan.
        attempt_id: whose.
        reader: of what it left.
        child: its job, None if the scheduler does not tell.
        unasked: why the scheduler was not asked or did not answer, "" if it did.
    """
    count, found = files.num_nodes, Findings()
    expected = f"{count} {'task' if count == 1 else 'tasks'}, all of them in the gang that trained"
    if child is not None and child.tasks:
        states = Counter(task.state for task in child.tasks)
        if len(child.tasks) != count:
            found.problems.append(f"the child job has {len(child.tasks)} tasks")
        found.problems += [
            f"{number} {state}" for state, number in sorted(states.items()) if state != "succeeded"
        ]
        seen = f"{states['succeeded']} of {count} tasks succeeded"
        return found.fact("tasks_joined", expected, seen, [f"job {child.job_id}"])
    told = unasked or "Iris does not tell of its job"
    if count == 1:
        evidence = [files.resolved_config_uri]
        try:
            run = _section(resolved_document(files, reader), "run")
            if run.get("attempt_id") != attempt_id:
                found.problems.append(f"the resolved document is of attempt {run.get('attempt_id')!r}")
        except (Unreadable, Unknown) as error:
            found.add(error)
        seen = f"the only task started its driver ({told})"
    else:
        head, done = (f"{files.rendezvous_dir}/ray_head.{ending}" for ending in ("json", "done"))
        evidence = [head, done]
        try:
            _rendezvous_problems(count, reader.mapping(head), reader.mapping(done), found)
        except (Unreadable, Unknown) as error:
            found.add(error)
        seen = f"the head counted {count} tasks and reported success to them ({told})"
    if unasked and found.problems:
        # The scheduler may know better: what the runtime left is not all that there is to ask.
        found.unknown += [unasked, *found.problems]
        found.problems.clear()
    return found.fact("tasks_joined", expected, seen, evidence)


def model_loaded_as_declared(files: RunFiles, attempt_id: str, reader: Reader) -> Fact:
    """The driver was told to load the declared model through the declared path.

    The resolved document is what the trainer gets, written by the process that starts it. That it was loaded
    follows from the steps that were made with it.
    """
    found = Findings()
    name = files.resolved_config_uri.rsplit("/", 1)[-1]
    path = ""
    try:
        document = resolved_document(files, reader)
        policy = _section(document, "skyrl", "trainer", "policy", "model")
        path = str(policy.get("path"))
        wanted: dict[str, tuple[Any, Any]] = {
            "run.id": (_section(document, "run").get("id"), files.run_id),
            "run.attempt_id": (_section(document, "run").get("attempt_id"), attempt_id),
            "runtime.launcher_commit": (
                _section(document, "runtime").get("launcher_commit"),
                files.launcher_commit,
            ),
        }
        declared = _section(document, "inputs", "model")
        for field, value in (
            ("uri", files.model_uri),
            ("identity", files.model_identity),
            ("local_path", files.model_local_path),
            ("tokenizer_revision", files.tokenizer_revision),
        ):
            wanted[f"inputs.model.{field}"] = (declared.get(field), value)
        key = "skyrl.trainer.policy.model"
        wanted[f"{key}.revision"] = (policy.get("revision"), files.model_identity)
        if files.model_uri.startswith(_OBJECT_STORAGE):
            wanted[f"{key}.source_uri"] = (policy.get("source_uri"), files.model_uri)
            wanted[f"{key}.source_identity"] = (policy.get("source_identity"), files.model_identity)
        if not (_STAGED_METADATA.fullmatch(path) and policy.get("source_uri") == files.model_uri):
            wanted[f"{key}.path"] = (policy.get("path"), files.model_local_path)
        found.problems += [
            f"{name} has {field} {seen!r}, not {value!r}"
            for field, (seen, value) in wanted.items()
            if seen != value
        ]
    except (Unreadable, Unknown) as error:
        found.add(error)
    return found.fact(
        "model_loaded_as_declared",
        f"{files.model_identity} from {files.model_uri} through {files.model_local_path}",
        f"the trainer's policy is {files.model_identity} from {files.model_uri} at {path}",
        [files.resolved_config_uri],
    )


def optimizer_steps_advanced(files: RunFiles, attempt_id: str, reader: Reader) -> Fact:
    """The optimizer made at least one step, by the terminal manifest and the checkpoint root."""
    found = Findings()
    evidence = [files.terminal_manifest_uri]
    step: int | None = None
    try:
        result = result_at(files.terminal_manifest_uri, reader)
        if result.get("attempt_id") != attempt_id:
            found.problems.append(f"the manifest is of attempt {result.get('attempt_id')!r}")
        step, _ = exported_policy(result)
    except (Unreadable, Unknown) as error:
        found.add(error)
    try:
        saved = latest_step(files, reader)
        evidence.append(f"{files.checkpoint_root}/{LATEST_FILE}")
        if step is not None and saved != step:
            found.problems.append(f"the manifest says step {step}, {LATEST_FILE} says {saved}")
        step = saved if step is None else step
    except (Unreadable, Unknown) as error:
        if step is None:
            # Without an export the manifest names no step; with one, the checkpoint may be gone by now.
            found.add(error)
    if step is not None and step < 1:
        found.problems.append(f"the last step is {step}")
    planned = "" if files.max_steps is None else f" of {files.max_steps} planned"
    return found.fact(
        "optimizer_steps_advanced", f"at least 1 step{planned}", f"step {step}{planned}", evidence
    )


def terminal_artifacts_exist(
    files: RunFiles, attempt_id: str, reader: Reader, *, recorded_state: str
) -> Fact:
    """Manifest, attempt record, checkpoint and export exist, belong to the attempt, and agree."""
    found = Findings()
    if recorded_state != "succeeded":
        found.problems.append(f"the run's record says {recorded_state}")
    attempt_record = f"{files.attempt_uri(attempt_id)}.json"
    evidence = [files.terminal_manifest_uri, attempt_record]
    exported_step: int | None = None
    export: str | None = None
    for what, uri in (("the manifest", files.terminal_manifest_uri), ("the attempt record", attempt_record)):
        try:
            result = result_at(uri, reader)
        except (Unreadable, Unknown) as error:
            found.add(error, "" if uri == files.terminal_manifest_uri else "attempt record")
            continue
        for field, wanted in (
            ("run_id", files.run_id),
            ("attempt_id", attempt_id),
            ("launcher_commit", files.launcher_commit),
            ("state", "succeeded"),
        ):
            if result.get(field) != wanted:
                found.problems.append(f"{what} has {field} {result.get(field)!r}, not {wanted!r}")
        if uri == files.terminal_manifest_uri:
            exported_step, export = exported_policy(result)
            if files.export_hf and (export is None or exported_step is None):
                found.problems.append("the manifest names no exported policy")
    step = exported_step
    try:
        step = latest_step(files, reader)
        _checkpoint_problems(files, step, reader, found, evidence)
    except (Unreadable, Unknown) as error:
        found.add(error, "checkpoint")
    if files.export_hf and export is not None and exported_step is not None:
        evidence.append(f"{export}/")
        wanted_uri = f"{files.export_root}/global_step_{exported_step}/policy"
        if export != wanted_uri:
            found.problems.append(f"the manifest names the export {export}, not {wanted_uri}")
        _export_problems(export, reader, found)
    parts = ["manifest", "attempt record", "checkpoint", *(["export"] if files.export_hf else [])]
    return found.fact(
        "terminal_artifacts_exist",
        f"{', '.join(parts)} of attempt {attempt_id}",
        f"all of them, at step {step}",
        evidence,
    )


def _rendezvous_problems(count: int, head: dict[str, Any], done: dict[str, Any], found: Findings) -> None:
    if head.get("num_tasks") != count:
        found.problems.append(f"ray_head.json has num_tasks {head.get('num_tasks')!r}, not {count}")
    if done.get("outcome") != "succeeded":
        found.problems.append(f"ray_head.done has outcome {done.get('outcome')!r}")
    if head.get("gang_epoch") is None or head.get("gang_epoch") != done.get("gang_epoch"):
        found.problems.append("ray_head.json and ray_head.done are of different gangs")


def _checkpoint_problems(
    files: RunFiles, step: int, reader: Reader, found: Findings, evidence: list[str]
) -> None:
    checkpoint = f"{files.checkpoint_root}/global_step_{step}"
    evidence.append(f"{checkpoint}/")
    if not reader.exists(f"{checkpoint}/trainer_state.pt"):
        found.problems.append(f"checkpoint {checkpoint}/trainer_state.pt is missing")


def _export_problems(export: str, reader: Reader, found: Findings) -> None:
    """Look for what the launcher itself asks of an export (marinskyrl/hf_model.py@264af083,
    `validate_portable_hf_model_files`), by the names that Transformers writes."""
    try:
        reader.mapping(f"{export}/config.json")
    except (Unreadable, Unknown) as error:
        found.add(error, "export")
    try:
        _weight_problems(export, reader, found)
        if not any(reader.exists(f"{export}/{name}") for name in _TOKENIZER):
            found.problems.append(f"export has none of {', '.join(_TOKENIZER)}")
    except (Unreadable, Unknown) as error:
        found.add(error, "export")


def _weight_problems(export: str, reader: Reader, found: Findings) -> None:
    for name in _WEIGHTS:
        if reader.exists(f"{export}/{name}"):
            return
        index = f"{name}.index.json"
        if not reader.exists(f"{export}/{index}"):
            continue
        shards = reader.mapping(f"{export}/{index}").get("weight_map")
        names = sorted({str(shard) for shard in shards.values()}) if isinstance(shards, dict) else []
        missing = [shard for shard in names if not reader.exists(f"{export}/{shard}")]
        if not names:
            found.problems.append(f"export {index} names no shard")
        elif missing:
            more = f" and {len(missing) - _SHOWN_SHARDS} more" if len(missing) > _SHOWN_SHARDS else ""
            found.problems.append(
                f"export lacks {', '.join(missing[:_SHOWN_SHARDS])}{more}, which {index} names"
            )
        return
    found.problems.append(f"export has no weights: neither {_WEIGHTS[0]} nor {_WEIGHTS[0]}.index.json")


def _section(document: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return a mapping inside a document, an empty one where there is none."""
    value: Any = document
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
