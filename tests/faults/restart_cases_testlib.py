"""A controller that dies at the worst moments and comes back with what it had written down."""

from collections.abc import Callable

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment
from tests.faults.iris_proxy_testlib import When
from tests.faults.world_testlib import SECONDS, World, until
from tools.launcher.cli import exit_codes

catalogue = Catalogue()


def _restart(world: World) -> None:
    world.kill_iris()
    world.start_iris()


@catalogue.case(restarts=True)
def controller_restarted_after_the_intent(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(1), "after")
    call = world.launch(experiment, "--detach")
    hold.wait_reached(SECONDS)
    _restart(world)
    hold.release()
    # On a slow machine its patience ends before the controller is back.
    assert call.wait(SECONDS) in (exit_codes.OK, exit_codes.UNKNOWN), call.said()


def _dies_at_the_submission(when: When) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        hold = world.iris.hold("LaunchJob", experiment.job_name, when=when)
        call = world.launch(experiment, "--detach")
        hold.wait_reached(SECONDS)
        world.kill_iris()
        hold.cut()
        assert call.wait(SECONDS) == exit_codes.UNKNOWN, call.said()
        world.start_iris()

    return act


catalogue.add(
    "controller-dies-before-it-gets-the-submission", _dies_at_the_submission("before"), restarts=True
)
catalogue.add("controller-dies-after-it-took-the-submission", _dies_at_the_submission("after"), restarts=True)


@catalogue.case(restarts=True)
def controller_restarted_while_the_coordinator_works(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(6))
    call = world.launch(experiment, "--detach")
    assert call.wait(SECONDS) == exit_codes.OK
    hold.wait_reached(SECONDS)
    world.kill_iris()
    hold.cut()
    world.start_iris()


@catalogue.case(restarts=True)
def controller_restarted_while_the_child_works(world: World, experiment: Experiment) -> None:
    call = world.launch(experiment)
    until(lambda: "child_submitted" in world.kinds(experiment), "the child's event")
    _restart(world)
    call.wait(SECONDS)
