"""What a case is, how it is brought to its end, and what must be true then."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.experiment_for_test import Experiment, build_experiment
from tests.faults.world_testlib import SECONDS, World
from tools.launcher.cli import exit_codes
from tools.launcher.store.records import RunRecord


@dataclass(frozen=True)
class Case:
    """One fault.

    Attributes:
        name: what goes wrong; the experiment's name too, so letters, digits and hyphens.
        act: does it. Whatever state it leaves, one more launch follows.
        code: exit status of that launch.
        relaunched: after that, a relaunch succeeds.
        children: jobs of each attempt's gang at the end, 0 or 1; of a relaunch always 1.
        restarts: it restarts the controller, so it shares no world with cases that do not.
    """

    name: str
    act: Callable[[World, Experiment], None]
    code: int = exit_codes.OK
    relaunched: bool = False
    children: int = 1
    restarts: bool = False


@dataclass
class Catalogue:
    """The cases of one module."""

    cases: list[Case] = field(default_factory=list)

    def add(
        self,
        name: str,
        act: Callable[[World, Experiment], None],
        *,
        code: int = exit_codes.OK,
        relaunched: bool = False,
        children: int = 1,
        restarts: bool = False,
    ) -> None:
        """Add a case; see `Case`."""
        self.cases.append(Case(name, act, code, relaunched, children, restarts))

    def case(
        self,
        *,
        code: int = exit_codes.OK,
        relaunched: bool = False,
        children: int = 1,
        restarts: bool = False,
    ) -> Callable[[Callable[[World, Experiment], None]], None]:
        """Decorate a function that is a case; its name is the case's."""

        def decorate(act: Callable[[World, Experiment], None]) -> None:
            name = act.__name__.replace("_", "-")
            self.add(name, act, code=code, relaunched=relaunched, children=children, restarts=restarts)

        return decorate


@dataclass(frozen=True)
class Done:
    """How a case ended: the jobs that Iris has of it, coordinators and children."""

    coordinators: tuple[str, ...]
    children: tuple[str, ...]


def run_case(case: Case, world: World, folder: Path) -> Done:
    """Do a case, launch once more, and judge what is there.

    Args:
        case: the fault.
        world: where.
        folder: for the experiment's files.
    """
    experiment = build_experiment(folder / case.name, case.name)
    case.act(world, experiment)
    _launched(world, experiment, case.code)
    if case.relaunched:
        _launched(world, experiment, exit_codes.OK, "--relaunch", "--authorize=ann: the fault is over")
    return judged(case, world, experiment)


def judged(case: Case, world: World, experiment: Experiment) -> Done:
    """Return the jobs of a case, if they and the records are as they must be."""
    coordinators = world.jobs_of(experiment)
    attempts = 2 if case.relaunched else 1
    assert coordinators == tuple(world.job_id(experiment, ordinal + 1) for ordinal in range(attempts))
    children: list[str] = []
    for ordinal, coordinator in enumerate(coordinators, start=1):
        own = world.children_of(coordinator)
        assert len(own) == (case.children if ordinal == 1 else 1), f"jobs below {coordinator}: {own}"
        children += own
        record = world.record(experiment, ordinal)
        assert record is not None, "there is no record"
        if ordinal == attempts and case.code in (exit_codes.OK, exit_codes.FAILED):
            _require_whole(record, coordinator, own)
        if ordinal > 1 or case.code == exit_codes.OK:
            provenance = f"runs/{experiment.name}/{experiment.launch_digest}/{ordinal}/provenance"
            assert any(provenance in name for name in world.gcs.objects), "there is no provenance"
    return Done(coordinators, tuple(children))


def _launched(world: World, experiment: Experiment, code: int, *flags: str) -> None:
    call = world.launch(experiment, *flags)
    seen = call.wait(SECONDS)
    assert seen == code, f"exit status {seen}, not {code}:\n{call.said()}\n{_seen(world, experiment)}"
    assert "Traceback" not in call.err, call.err


def _require_whole(record: RunRecord, coordinator: str, children: tuple[str, ...]) -> None:
    """A record that tells the whole story once, however often parts of it were done again."""
    kinds = [event.kind for event in record.events]
    story = " ".join(kinds)
    assert kinds[0] == "intent" and kinds[-1] == "verified", story
    assert kinds.count("intent") == kinds.count("succeeded") == 1, story
    assert "failed" not in kinds and "conflict" not in kinds and "refused" not in kinds, story
    assert record.state == "succeeded" and record.verification is not None, story
    # Who submitted says so, and of all who found the job one. A run that nobody looked at between a lost answer
    # and its end has the word of its coordinator alone.
    adopted = [event.facts["adopted"] for event in record.events if event.kind == "submitted"]
    assert adopted.count(False) <= 1 and adopted.count(True) <= 1, story
    named = {
        event.facts["job_id"] for event in record.events if event.kind in ("submitted", "coordinator_started")
    }
    assert named == {coordinator}, named
    assert record.child_job_ids == children, f"{record.child_job_ids} on record, {children} in Iris"
    trained = record.artifacts[-1]
    done = [
        e.kind
        for e in record.events
        if e.facts.get("step") == trained and e.kind in ("step_finished", "step_reused")
    ]
    assert done, f"{trained} is not done: {story}"


def _seen(world: World, experiment: Experiment) -> str:
    record = world.record(experiment)
    events = [
        f"{event.seq} {event.kind} by {event.by}: {str(event.facts.get('reason', ''))[:300]}"
        for event in (record.events if record else ())
    ]
    return "\n".join(["record:", *events, f"jobs: {world.jobs_of(experiment)}"])


class Runs:
    """Cases that run beside each other; their results are fetched one by one."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._pools: list[ThreadPoolExecutor] = []
        self._futures: dict[str, Future[Done]] = {}

    def start(self, cases: Sequence[Case], world: World, folder: Path, *, at_once: int) -> None:
        """Begin with cases.

        Args:
            cases: in the order in which they begin.
            world: where.
            folder: for their experiments' files.
            at_once: how many.
        """
        pool = ThreadPoolExecutor(at_once)
        self._pools.append(pool)
        self._futures |= {case.name: pool.submit(run_case, case, world, folder) for case in cases}

    def result(self, name: str) -> Done:
        """Wait for a case and return how it ended; raises what went wrong with it."""
        return self._futures[name].result()

    def done(self) -> list[Done]:
        """All that ended well, once all have ended."""
        return [future.result() for future in self._futures.values() if future.exception() is None]

    def close(self) -> None:
        """Start no more and wait for those that run."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)
