"""Coordinators that die before and after each of their events, and lose the store while they work."""

from collections.abc import Callable

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment
from tests.faults.iris_proxy_testlib import When
from tests.faults.world_testlib import SECONDS, World, until
from tools.launcher.cli import exit_codes
from tools.launcher.store.testing.gcs_faults_for_test import Fault, Kind

catalogue = Catalogue()

EVENTS = {
    "start": (3, "coordinator_started"),
    "model-reused": (4, "step_reused"),
    "data-reused": (5, "step_reused"),
    "step-started": (6, "step_started"),
    "child-submitted": (7, "child_submitted"),
    "step-finished": (8, "step_finished"),
    "success": (9, "succeeded"),
}
"""What a coordinator records, and at which place of the record after the launcher's two events."""


def begin(world: World, experiment: Experiment) -> None:
    """Have the coordinator submitted, and nobody follow it."""
    call = world.launch(experiment, "--detach")
    assert call.wait(SECONDS) == exit_codes.OK, call.said()


def _killed_at(number: int, kind: str, when: When) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        hold = world.gcs.hold("insert", experiment.event(number), when)
        begin(world, experiment)
        hold.wait_reached(SECONDS)
        kinds = world.kinds(experiment)
        assert len(kinds) == number - (when == "before"), kinds
        assert when == "before" or kinds[-1] == kind, kinds
        world.kill_coordinator(experiment)
        hold.cut()

    return act


for _name, (_number, _kind) in EVENTS.items():
    catalogue.add(f"coordinator-killed-before-{_name}", _killed_at(_number, _kind, "before"))
    catalogue.add(f"coordinator-killed-after-{_name}", _killed_at(_number, _kind, "after"))


@catalogue.case()
def coordinator_killed_reading_its_bundle(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("get", experiment.bundle)
    begin(world, experiment)
    hold.wait_reached(SECONDS)
    world.kill_coordinator(experiment)
    hold.cut()


@catalogue.case()
def coordinator_killed_twice(world: World, experiment: Experiment) -> None:
    first = world.gcs.hold("insert", experiment.event(6))
    begin(world, experiment)
    first.wait_reached(SECONDS)
    world.kill_coordinator(experiment)
    second = world.gcs.hold("insert", experiment.records)
    first.cut()
    second.wait_reached(SECONDS)
    world.kill_coordinator(experiment)
    second.cut()


@catalogue.case()
def event_of_a_dead_coordinator_arrives_late(world: World, experiment: Experiment) -> None:
    late = world.gcs.hold("insert", experiment.event(6))
    begin(world, experiment)
    late.wait_reached(SECONDS)
    world.kill_coordinator(experiment)
    until(lambda: world.kinds(experiment).count("coordinator_started") == 2, "the second coordinator")
    late.release()


@catalogue.case()
def coordinator_is_terminated(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(6), "after")
    begin(world, experiment)
    hold.wait_reached(SECONDS)
    world.terminate_coordinator(experiment)
    hold.release()


@catalogue.case(code=exit_codes.FAILED, relaunched=True)
def runtime_launcher_is_killed(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(7), "after")
    begin(world, experiment)
    hold.wait_reached(SECONDS)
    world.kill_runtime_launcher(experiment)
    hold.release()


def _store(fault: Callable[[World, Experiment], None]) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        fault(world, experiment)
        begin(world, experiment)

    return act


def _event(name: str, experiment: Experiment) -> str:
    return experiment.event(EVENTS[name][0])


for _name in ("start", "success"):
    catalogue.add(
        f"coordinator-store-busy-at-{_name}",
        _store(lambda w, x, n=_name: w.gcs.answer(503, "insert", _event(n, x), count=2)),  # type: ignore[misc]
    )
    catalogue.add(
        f"coordinator-reply-lost-at-{_name}",
        _store(lambda w, x, n=_name: w.gcs.lose_reply("insert", _event(n, x), count=1)),  # type: ignore[misc]
    )
for _name in ("start", "step-finished", "success"):
    catalogue.add(
        f"coordinator-denied-at-{_name}",
        _store(lambda w, x, n=_name: w.gcs.answer(403, "insert", _event(n, x), count=1)),  # type: ignore[misc]
    )


def _reading_its_bundle(kind: Kind, count: int = 1, status: int = 0) -> Callable[[World, Experiment], None]:
    """What goes wrong when the coordinator, and nobody else, reads the bundle."""

    def act(world: World, experiment: Experiment) -> None:
        fault = Fault(kind, "get", experiment.bundle, count, status=status)
        hold = world.gcs.hold("insert", experiment.event(3), "after")
        begin(world, experiment)
        hold.wait_reached(SECONDS)
        world.gcs._faults.add(fault)
        hold.release()
        until(lambda: fault.left == 0, "the coordinator reads its bundle")

    return act


catalogue.add("coordinator-denied-its-bundle", _reading_its_bundle("answer", status=403))
catalogue.add("coordinator-gets-half-a-bundle", _reading_its_bundle("truncate"))
catalogue.add(
    "coordinator-gets-a-damaged-bundle", _reading_its_bundle("damage", 2), code=exit_codes.FAILED,
    children=0, relaunched=True,
)
catalogue.add("coordinator-answer-cut-off", _reading_its_bundle("cut"))


@catalogue.case()
def coordinator_store_away_for_long(world: World, experiment: Experiment) -> None:
    away = Fault("answer", "insert", experiment.event(6), None, status=503)
    world.gcs._faults.add(away)
    begin(world, experiment)
    first = world.coordinator_pid(experiment)
    until(lambda: world.coordinator_pid(experiment) != first, "another start of the coordinator")
    away.left = 0
