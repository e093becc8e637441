"""Launchers that die, at every step they take, and answers that never reach them."""

from collections.abc import Callable

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment
from tests.faults.iris_proxy_testlib import When
from tests.faults.world_testlib import SECONDS, World, until
from tools.launcher.cli import exit_codes
from tools.launcher.store.testing.gcs_faults_for_test import Method

catalogue = Catalogue()
Key = Callable[[Experiment], str]

WRITES: dict[str, Key] = {
    "bundle": lambda x: x.bundle,
    "claim": lambda x: x.claims,
    "turn": lambda x: x.turns,
    "intent": lambda x: x.event(1),
    "submitted": lambda x: x.event(2),
    "provenance": lambda x: x.provenance,
    "verified": lambda x: x.event(10),
}
"""The arrows that write, in order: what and at which key."""

READS: dict[str, Key] = {
    "records": lambda x: x.records,
    "turns": lambda x: x.turns,
}
"""What a launch looks up before it writes."""


def _killed_at(method: Method, key: Key, when: When) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        hold = world.gcs.hold(method, key(experiment), when)
        call = world.launch(experiment)
        hold.wait_reached(SECONDS)
        call.kill()
        hold.cut()

    return act


def _killed_asking_iris(rpc: str, when: When) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        hold = world.iris.hold(rpc, experiment.job_name, when=when)
        call = world.launch(experiment)
        hold.wait_reached(SECONDS)
        call.kill()
        hold.cut()

    return act


for _name, _key in READS.items():
    catalogue.add(f"killed-reading-{_name}", _killed_at("list", _key, "before"))
for _name, _key in WRITES.items():
    catalogue.add(f"killed-before-{_name}", _killed_at("insert", _key, "before"))
    catalogue.add(f"killed-after-{_name}", _killed_at("insert", _key, "after"))
catalogue.add("killed-before-submission", _killed_asking_iris("LaunchJob", "before"))
catalogue.add("killed-after-submission", _killed_asking_iris("LaunchJob", "after"))


@catalogue.case()
def killed_while_following(world: World, experiment: Experiment) -> None:
    call = world.launch(experiment)
    until(lambda: "child_submitted" in world.kinds(experiment), "the child's event")
    call.kill()


def _reply_lost(key: Key) -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        world.gcs.lose_reply("insert", key(experiment), count=1)
        assert world.launch(experiment, "--detach").wait(SECONDS) == exit_codes.OK

    return act


catalogue.add("reply-lost-of-intent", _reply_lost(WRITES["intent"]))


@catalogue.case()
def submission_lost_on_its_way(world: World, experiment: Experiment) -> None:
    lost = world.iris.lose("LaunchJob", experiment.job_name, when="before")
    assert world.launch(experiment, "--detach").wait(SECONDS) == exit_codes.OK
    assert lost.seen == 1


@catalogue.case()
def submission_accepted_and_reply_lost(world: World, experiment: Experiment) -> None:
    lost = world.iris.lose("LaunchJob", experiment.job_name, when="after")
    assert world.launch(experiment, "--detach").wait(SECONDS) == exit_codes.OK
    assert lost.seen == 1


@catalogue.case()
def submission_lost_twice(world: World, experiment: Experiment) -> None:
    world.iris.lose("LaunchJob", experiment.job_name, when="before", count=2)
    call = world.launch(experiment, "--detach")
    assert call.wait(SECONDS) == exit_codes.UNKNOWN
    assert "Launch again: that looks the job up by name before it acts" in call.err
    assert world.jobs_of(experiment) == ()


@catalogue.case()
def reply_lost_and_then_no_answer(world: World, experiment: Experiment) -> None:
    hold = world.iris.hold("LaunchJob", experiment.job_name, when="after")
    call = world.launch(experiment, "--detach")
    hold.wait_reached(SECONDS)
    silent = world.iris.lose("GetJobStatus", experiment.job_name, when="before", count=1000)
    hold.cut()
    assert call.wait(SECONDS) == exit_codes.UNKNOWN
    silent.left = 0
    assert "may exist" in call.err


@catalogue.case()
def submission_delivered_after_the_next_ones(world: World, experiment: Experiment) -> None:
    late = world.iris.hold("LaunchJob", experiment.job_name, when="before")
    call = world.launch(experiment)
    late.wait_reached(SECONDS)
    call.kill()
    assert world.launch(experiment, "--detach").wait(SECONDS) == exit_codes.OK
    late.release()


def _write_comes_late(key: Key) -> Callable[[World, Experiment], None]:
    """The network delivers what a dead launcher wrote after another one has gone on."""

    def act(world: World, experiment: Experiment) -> None:
        late = world.gcs.hold("insert", key(experiment), "before")
        call = world.launch(experiment)
        late.wait_reached(SECONDS)
        call.kill()
        assert world.launch(experiment, "--detach").wait(SECONDS) == exit_codes.OK
        late.release()

    return act


catalogue.add("late-intent-of-a-dead-launcher", _write_comes_late(WRITES["intent"]))
