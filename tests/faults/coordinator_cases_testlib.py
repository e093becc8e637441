"""Coordinators that die before and after each of their events, and lose the store while they work."""

from collections.abc import Callable

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment
from tests.faults.iris_proxy_testlib import When
from tests.faults.world_testlib import SECONDS, World, until
from tools.launcher.cli import exit_codes
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs
from tools.launcher.store.testing.gcs_faults_for_test import Fault

catalogue = Catalogue()

EVENTS = {
    "start": (3, "coordinator_started"),
    "input-reused": (4, "step_reused"),
    "step-started": (6, "step_started"),
    "child-submitted": (7, "child_submitted"),
    "step-finished": (8, "step_finished"),
    "success": (9, "succeeded"),
}
"""What a coordinator records, and at which place of the record after the launcher's two events."""


def begin(world: World, experiment: Experiment, **variables: str) -> None:
    """Have the coordinator submitted, and nobody follow it."""
    call = world.launch(experiment, "--detach", **variables)
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
    started = world.gcs.hold("insert", experiment.event(3), "after")
    begin(world, experiment)
    started.wait_reached(SECONDS)
    hold = world.gcs.hold("get", experiment.bundle)  # Only now: a launcher may read it too.
    started.release()
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
    # The gang must not get to its end first.
    begin(world, experiment, SLIPWAY_REHEARSAL_FAULT='{"rank": 0, "kind": "never_join"}')
    hold.wait_reached(SECONDS)
    world.kill_runtime_launcher(experiment)
    hold.release()


@catalogue.case(code=exit_codes.FAILED, relaunched=True)
def runtime_launcher_is_killed_after_the_last_checkpoint(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(7), "after")
    begin(world, experiment)
    hold.wait_reached(SECONDS)
    until(lambda: world.has_checkpoint(experiment), "the checkpoint of the only step")
    world.kill_runtime_launcher(experiment)
    hold.release()


def _store(fault: Callable[[World, Experiment], object]) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        fault(world, experiment)
        begin(world, experiment)

    return act


def _event(name: str, experiment: Experiment) -> str:
    return experiment.event(EVENTS[name][0])


catalogue.add(
    "coordinator-store-busy-at-start",
    _store(lambda world, experiment: world.gcs.answer(503, "insert", _event("start", experiment), count=2)),
)
catalogue.add(
    "coordinator-reply-lost-at-success",
    _store(lambda world, experiment: world.gcs.lose_reply("insert", _event("success", experiment), count=1)),
)


def _denied(name: str) -> Callable[[World, Experiment], None]:
    return _store(
        lambda world, experiment: world.gcs.answer(403, "insert", _event(name, experiment), count=1)
    )


for _name in ("step-finished", "success"):
    catalogue.add(f"coordinator-denied-at-{_name}", _denied(_name))


def _reading_its_bundle(inject: Callable[[FakeGcs, str], Fault]) -> Callable[[World, Experiment], None]:
    """What goes wrong when the coordinator, and nobody else, reads the bundle."""

    def act(world: World, experiment: Experiment) -> None:
        hold = world.gcs.hold("insert", experiment.event(3), "after")
        begin(world, experiment)
        hold.wait_reached(SECONDS)
        fault = inject(world.gcs, experiment.bundle)
        hold.release()
        until(lambda: fault.left == 0, "the coordinator reads its bundle")

    return act


catalogue.add(
    "coordinator-denied-its-bundle",
    _reading_its_bundle(lambda gcs, bundle: gcs.answer(403, "get", bundle, count=1)),
)
catalogue.add(
    "coordinator-gets-a-damaged-bundle",
    _reading_its_bundle(lambda gcs, bundle: gcs.damage(bundle, count=2)),
    code=exit_codes.FAILED,
    children=0,
    relaunched=True,
)


@catalogue.case()
def coordinator_store_away_for_long(world: World, experiment: Experiment) -> None:
    away = world.gcs.answer(503, "insert", experiment.event(6))
    begin(world, experiment)
    first = world.coordinator_pid(experiment)
    until(lambda: world.coordinator_pid(experiment) != first, "another start of the coordinator")
    away.left = 0
