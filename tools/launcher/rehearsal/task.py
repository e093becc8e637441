"""One task of the gang: join, stage, load, train, checkpoint, export, report.

Exit codes: 0 done; TASK_FAILED this task is the cause; PEER_FAILED another one is. What the task
has to say stands in `<attempt>/failures/<rank>.json` and as the last line on stderr.
"""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from tools.launcher.documents.canonical import canonical_json, sha256_hex
from tools.launcher.documents.files import write_atomically
from tools.launcher.iris.delivered_secrets import CredentialMissing, delivered
from tools.launcher.rehearsal.checkpoints import (
    Owner,
    checkpoint_folder,
    is_due,
    resume_latest,
    save_checkpoint,
    tear_checkpoint,
)
from tools.launcher.rehearsal.document import RehearsalDocument, notices, read_document
from tools.launcher.rehearsal.environments import environment_for
from tools.launcher.rehearsal.faults import (
    Fault,
    fault_from,
    strike_before_joining,
    strike_before_step,
    tears_checkpoint,
)
from tools.launcher.rehearsal.limits import Limits, limits_from
from tools.launcher.rehearsal.outcome import (
    DOCUMENT_FILE,
    OUTCOME_FILE,
    PEER_FAILED,
    TASK_FAILED,
    Outcome,
)
from tools.launcher.rehearsal.policy import REHEARSAL_LEARNING_RATE, AdamState, Floats
from tools.launcher.rehearsal.problems import RehearsalProblem
from tools.launcher.rehearsal.rendezvous import Gang, GangError, PeerLost, join_gang
from tools.launcher.rehearsal.staging import (
    LoadedModel,
    load_model,
    load_rows,
    stage_data,
    stage_model,
)
from tools.launcher.rehearsal.standin import write_model
from tools.launcher.rehearsal.training import StepReport, evaluate, plan_of, train_step
from tools.launcher.store.locations import ObjectRoot
from tools.launcher.store.object_store import StoreError

# "/user/job/child/<task index>:<start>", as marin-iris writes it (iris/cluster/runtime/env.py).
_TASK_ID: Final = re.compile(r"^/.+/(?P<index>\d+)(?::(?P<start>\d+))?$")


class NotATask(RehearsalProblem):
    """The process was not started by Iris."""


class TaskPlace(BaseModel):
    """Which task of which gang this process is.

    Attributes:
        rank: index of the task, from 0.
        world_size: tasks of the job.
        start: how often Iris has started this task before.
        workdir: folder with the files the job was submitted with.
        task_id: the task's name in Iris.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    rank: int
    world_size: int
    start: int
    workdir: Path
    task_id: str


def task_place(environ: Mapping[str, str]) -> TaskPlace:
    """Read the process's place from the variables Iris sets.

    Raises:
        NotATask: they are missing or unreadable.
    """
    task_id, workdir = environ.get("IRIS_TASK_ID", ""), environ.get("IRIS_WORKDIR", "")
    match, count = _TASK_ID.match(task_id), environ.get("IRIS_NUM_TASKS", "")
    if match is None or not count.isdigit() or not workdir:
        raise NotATask(
            f"IRIS_TASK_ID is {task_id!r}, IRIS_NUM_TASKS {count!r}, IRIS_WORKDIR {workdir!r}. "
            "This command only runs as a task of Iris; use `iris launch --config FILE`"
        )
    return TaskPlace(
        rank=int(match["index"]),
        world_size=int(count),
        start=int(match["start"] or 0),
        workdir=Path(workdir),
        task_id=task_id,
    )


def run_task(
    object_root: ObjectRoot,
    environ: Mapping[str, str],
    document_sha256: str,
    credentials: tuple[str, ...],
) -> int:
    """Run one task to its end and return its exit code; the last line on stderr says why it failed.

    Args:
        object_root: where the artifacts are.
        environ: the process's environment.
        document_sha256: of the launch document which the job was submitted for, 64 hex digits.
        credentials: names of what Iris must have delivered to this task.
    """
    try:
        place = task_place(environ)
        data = (place.workdir / DOCUMENT_FILE).read_bytes()
        if sha256_hex(data) != document_sha256:
            raise RehearsalProblem(
                f"{DOCUMENT_FILE} has sha256:{sha256_hex(data)}, the job was submitted for "
                f"sha256:{document_sha256}. Launch again"
            )
        document = read_document(data, source=DOCUMENT_FILE)
        limits = limits_from(environ, document.ray.cluster_join_timeout)
        fault = fault_from(environ, rank=place.rank, start=place.start)
    except (RehearsalProblem, OSError) as error:
        print(f"[rehearsal] this task failed: {error}", file=sys.stderr, flush=True)
        return TASK_FAILED
    attempt = object_root.path(document.attempt_uri)
    try:
        # A rehearsal contacts no service: that the values are here is all there is to see.
        delivered(credentials, environ)
        _Task(place, document, data, object_root, attempt, limits, fault, credentials).run()
    except PeerLost as error:
        return _report_failure(attempt, place, str(error), PEER_FAILED)
    except (CredentialMissing, RehearsalProblem, StoreError, OSError) as error:
        return _report_failure(attempt, place, str(error), TASK_FAILED)
    except Exception as error:  # The boundary of the process: peers and people must hear of it.
        return _report_failure(attempt, place, f"unexpected {type(error).__name__}: {error}", TASK_FAILED)
    return 0


def _report_failure(attempt: Path, place: TaskPlace, reason: str, code: int) -> int:
    cause = "peer" if code == PEER_FAILED else "own"
    facts = {
        "rank": place.rank,
        "reason": reason,
        "cause": cause,
        "start": place.start,
        "slipway_rehearsal": True,
    }
    with contextlib.suppress(OSError):
        write_atomically(attempt / "failures" / f"{place.rank}.json", canonical_json(facts) + b"\n")
    print(f"[rehearsal] task {place.rank} failed: {reason}", file=sys.stderr, flush=True)
    return code


class _Task:
    """What the phases of a task share. `run` is the whole story, in order."""

    def __init__(
        self,
        place: TaskPlace,
        document: RehearsalDocument,
        document_bytes: bytes,
        object_root: ObjectRoot,
        attempt: Path,
        limits: Limits,
        fault: Fault | None,
        credentials: tuple[str, ...],
    ) -> None:
        self.place, self.document, self.document_bytes = place, document, document_bytes
        self.object_root, self.attempt, self.limits, self.fault = object_root, attempt, limits, fault
        self.credentials = credentials
        self.node_root = attempt / "nodes" / str(place.rank)
        self.checkpoints = object_root.path(document.artifacts.checkpoint_root)

    def run(self) -> None:
        wanted = self.document.iris.allocation.num_nodes
        if self.place.world_size != wanted:
            raise GangError(
                f"the job has {self.place.world_size} tasks, iris.allocation.num_nodes is {wanted}"
            )
        self._say(
            f"task {self.place.rank} of {wanted} starts; "
            "this is a rehearsal, nothing of it is a trained model"
        )
        with self._joined() as gang:
            model_weights, loaded = self._load(gang)
            self._train(gang, model_weights, loaded)
            gang.barrier("all tasks finished")

    @contextlib.contextmanager
    def _joined(self) -> Iterator[Gang]:
        strike_before_joining(self.fault)
        gang = join_gang(
            self.object_root.path(self.document.ray.rendezvous_dir) / self.document.run.attempt_id,
            token=self.document.run.attempt_id,
            rank=self.place.rank,
            world_size=self.place.world_size,
            join_seconds=self.limits.join,
            step_seconds=self.limits.step,
        )
        try:
            allocation = self.document.iris.allocation
            self._leave(
                "joined",
                {
                    "rank": self.place.rank,
                    "world_size": self.place.world_size,
                    "at_step": 0,
                    "task_id": self.place.task_id,
                    "start": self.place.start,
                    "gpus": allocation.gpus_per_node,
                    "gpu_variant": allocation.gpu_variant,
                    # Names only: this is a file.
                    "credentials": sorted(self.credentials),
                    "slipway_rehearsal": True,
                },
            )
            self._say(f"all {self.place.world_size} tasks joined")
            yield gang
        except PeerLost as error:
            gang.abort(str(error))
            raise
        except Exception as error:
            gang.abort(f"task {self.place.rank} failed: {error}")
            raise
        finally:
            gang.close()

    def _load(self, gang: Gang) -> tuple[Floats, LoadedModel]:
        inputs = self.document.inputs
        stage_model(inputs.model, self.node_root, self.object_root)
        stage_data([*inputs.train_data, *inputs.validation_data], self.node_root, self.object_root)
        weights, loaded = load_model(inputs.model, self.node_root)
        self._leave("model_load", {"rank": self.place.rank, "slipway_rehearsal": True, **loaded.model_dump()})
        gang.agree(loaded.weights_sha256, "digest of the loaded model")
        self._say(f"loaded {loaded.identity} through {loaded.declared_path}")
        return weights, loaded

    def _train(self, gang: Gang, model_weights: Floats, loaded: LoadedModel) -> None:
        document, head = self.document, self.place.rank == 0
        environment = environment_for(document.skyrl.environment.env_class)
        rows = load_rows(document.inputs.train_data, self.node_root, environment.name)
        plan = plan_of(document, len(rows))
        owner = Owner(
            run_id=document.run.id,
            launcher_commit=document.runtime.launcher_commit,
            model_identity=document.inputs.model.identity,
            seed=document.run.seed,
        )
        if head:
            self._say(f"environment {environment.name}: {environment.stand_in}")
            for notice in notices(document):
                self._say(f"notice: {notice}")

        step, weights, optimizer = self._resume(gang, owner, model_weights)
        resumed_from = step
        metrics = _Metrics(self.attempt / "metrics.jsonl", step) if head else None
        while step < plan.last_step:
            step += 1
            started = time.monotonic()
            strike_before_step(self.fault, step)
            weights, optimizer, report = train_step(
                plan, step, weights, model_weights, optimizer, rows, environment, gang
            )
            if metrics is not None:
                metrics.append(report)
                self._say(
                    f"step {step}/{plan.last_step} reward {report.reward_mean:.3f} loss {report.loss:+.4f}"
                )
            if is_due(step, plan.last_step, document.skyrl.trainer.ckpt_interval):
                self._checkpoint(gang, owner, step, weights, optimizer)
            time.sleep(max(0.0, self.limits.pace - (time.monotonic() - started)))
        if metrics is not None:
            self._finish(step, resumed_from, weights, loaded, metrics)

    def _resume(self, gang: Gang, owner: Owner, model_weights: Floats) -> tuple[int, Floats, AdamState]:
        resumed = None
        if self.document.skyrl.trainer.resume_mode == "latest":
            resumed, refused = resume_latest(self.checkpoints, owner)
            for sentence in refused:
                self._say(sentence)
        step = resumed.step if resumed is not None else 0
        gang.agree(str(step), "step to resume from")
        if resumed is None:
            return 0, model_weights, AdamState.fresh()
        writer = ""
        if resumed.launcher_commit != owner.launcher_commit:
            writer = f", which runtime {resumed.launcher_commit} wrote (now it is {owner.launcher_commit})"
        self._say(f"resumes from the checkpoint of step {step}{writer}")
        return step, resumed.weights, resumed.optimizer

    def _checkpoint(self, gang: Gang, owner: Owner, step: int, weights: Floats, optimizer: AdamState) -> None:
        # Ranks which have drifted apart would make the checkpoint one rank's opinion.
        gang.agree(sha256_hex(weights.tobytes()), f"digest of the weights at step {step}")
        if self.place.rank == 0:
            if tears_checkpoint(self.fault, step):
                tear_checkpoint(
                    self.checkpoints, owner=owner, step=step, weights=weights, optimizer=optimizer
                )
                self._say(f"fault: the checkpoint of step {step} is torn and this task dies")
                os._exit(TASK_FAILED)
            keep = self.document.artifacts.resume_checkpoint_count
            save_checkpoint(
                self.checkpoints, owner=owner, step=step, weights=weights, optimizer=optimizer, keep=keep
            )
            self._say(f"checkpoint of step {step} written")
        gang.barrier(f"checkpoint of step {step}")

    def _finish(
        self, step: int, resumed_from: int, weights: Floats, loaded: LoadedModel, metrics: "_Metrics"
    ) -> None:
        document = self.document
        environment = environment_for(document.skyrl.environment.env_class)
        validation = load_rows(document.inputs.validation_data, self.node_root, environment.name)
        export = None
        if document.run.export_hf:
            export = f"{document.artifacts.export_root}/global_step_{step}"
            write_model(
                self.object_root.path(export),
                model_name=loaded.model_name,
                tokenizer_uri=document.inputs.model.tokenizer_uri,
                tokenizer_revision=document.inputs.model.tokenizer_revision,
                weights=weights,
            )
            self._say(f"exported to {export}")
        write_atomically(self.object_root.path(document.artifacts.resolved_config_uri), self.document_bytes)
        outcome = Outcome(
            rehearsal=True,
            global_step=step,
            resumed_from_step=resumed_from,
            checkpoint=f"{document.artifacts.checkpoint_root}/{checkpoint_folder(Path(), step).name}",
            export=export,
            task_count=self.place.world_size,
            reward_first=metrics.first_reward,
            reward_last=metrics.last_reward,
            validation_reward=evaluate(weights, validation, environment) if validation else None,
            stand_in=environment.stand_in,
            notices=list(notices(document)),
        )
        write_atomically(self.attempt / OUTCOME_FILE, canonical_json(outcome.model_dump()) + b"\n")

    def _leave(self, folder: str, facts: dict[str, Any]) -> None:
        write_atomically(self.attempt / folder / f"{self.place.rank}.json", canonical_json(facts) + b"\n")

    def _say(self, text: str) -> None:
        print(f"[rehearsal] {text}", flush=True)


class _Metrics:
    """metrics.jsonl of this attempt: lines of steps that are done again after a resume are dropped."""

    def __init__(self, path: Path, resumed_step: int) -> None:
        self._path = path
        kept = []
        if path.is_file():
            # A killed writer can leave half a last line; it is a step that will be done again.
            for line in path.read_bytes().splitlines():
                with contextlib.suppress(ValueError):
                    if json.loads(line)["step"] <= resumed_step:
                        kept.append(line)
        self._rewards = [float(json.loads(line)["reward_mean"]) for line in kept]
        write_atomically(path, b"".join(line + b"\n" for line in kept))

    @property
    def first_reward(self) -> float | None:
        return self._rewards[0] if self._rewards else None

    @property
    def last_reward(self) -> float | None:
        return self._rewards[-1] if self._rewards else None

    def append(self, report: StepReport) -> None:
        line = {**report.model_dump(), "lr": REHEARSAL_LEARNING_RATE, "slipway_rehearsal": True}
        with self._path.open("ab") as file:
            file.write(canonical_json(line) + b"\n")
        self._rewards.append(report.reward_mean)
