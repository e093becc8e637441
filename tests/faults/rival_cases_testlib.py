"""Several launchers at once, and others who have taken the version or the name."""

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment, build_experiment
from tests.faults.world_testlib import SECONDS, World
from tests.faults.zygote_testlib import Call
from tools.launcher.cli import exit_codes
from tools.launcher.iris.jobs import JobRequest

catalogue = Catalogue()


def _all_end_well(calls: list[Call]) -> None:
    for call in calls:
        assert call.wait(SECONDS) == exit_codes.OK, call.said()


@catalogue.case()
def two_launchers_at_once(world: World, experiment: Experiment) -> None:
    _all_end_well([world.launch(experiment, user=user) for user in ("ann", "bob")])


@catalogue.case()
def eight_launchers_at_once(world: World, experiment: Experiment) -> None:
    _all_end_well([world.launch(experiment, "--detach", user=f"user{number}") for number in range(8)])


@catalogue.case()
def two_users_write_the_intent_together(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(1), "before", 2)
    calls = [world.launch(experiment, "--detach", user=user) for user in ("ann", "bob")]
    hold.wait_reached(SECONDS)
    hold.release()
    _all_end_well(calls)


@catalogue.case()
def two_users_submit_together(world: World, experiment: Experiment) -> None:
    first = world.iris.hold("LaunchJob", experiment.job_name, when="before")
    ann = world.launch(experiment, "--detach", user="ann")
    first.wait_reached(SECONDS)
    second = world.iris.hold("LaunchJob", experiment.job_name, when="before")
    bob = world.launch(experiment, "--detach", user="bob")
    second.wait_reached(SECONDS)
    first.release()
    second.release()
    _all_end_well([ann, bob])


@catalogue.case()
def two_users_record_the_submission_together(world: World, experiment: Experiment) -> None:
    first = world.gcs.hold("insert", experiment.event(2))
    ann = world.launch(experiment, "--detach", user="ann")
    first.wait_reached(SECONDS)
    bob = world.launch(experiment, "--detach", user="bob")
    assert bob.wait(SECONDS) == exit_codes.OK
    first.release()
    _all_end_well([ann])


@catalogue.case()
def one_of_two_launchers_killed(world: World, experiment: Experiment) -> None:
    hold = world.iris.hold("LaunchJob", experiment.job_name, when="before")
    ann = world.launch(experiment, user="ann")
    hold.wait_reached(SECONDS)
    bob = world.launch(experiment, "--detach", user="bob")
    _all_end_well([bob])
    ann.kill()
    hold.release()


@catalogue.case()
def other_recipe_on_the_claimed_version(world: World, experiment: Experiment) -> None:
    other = _other(world, experiment, seed=18)
    hold = world.gcs.hold("insert", experiment.event(1))
    ann = world.launch(experiment, "--detach", user="ann")
    hold.wait_reached(SECONDS)
    bob = world.launch(other, user="bob")
    assert bob.wait(SECONDS) == exit_codes.REFUSED, bob.said()
    assert f"{experiment.artifact}@" in bob.err and "ann@" in bob.err, bob.err
    hold.release()
    _all_end_well([ann])
    assert world.launch(other, user="bob").wait(SECONDS) == exit_codes.REFUSED
    assert world.jobs_of(other) == ()


@catalogue.case()
def two_recipes_claim_one_version_together(world: World, experiment: Experiment) -> None:
    other = _other(world, experiment, seed=18)
    first = world.gcs.hold("insert", experiment.claims)
    bob = world.launch(other, user="bob")
    first.wait_reached(SECONDS)
    _all_end_well([world.launch(experiment, "--detach", user="ann")])
    first.release()
    assert bob.wait(SECONDS) == exit_codes.REFUSED, bob.said()
    assert world.jobs_of(other) == ()


@catalogue.case()
def other_placement_waits_for_its_turn(world: World, experiment: Experiment) -> None:
    other = _other(world, experiment, priority="batch")
    hold = world.gcs.hold("insert", experiment.event(7), "after")
    _all_end_well([world.launch(experiment, "--detach", user="ann")])
    hold.wait_reached(SECONDS)
    bob = world.launch(other, user="ann")
    assert bob.wait(SECONDS) == exit_codes.REFUSED, bob.said()
    assert "is the turn of" in bob.err, bob.err
    assert world.jobs_of(other) == ()
    hold.release()


@catalogue.case(code=exit_codes.REFUSED, children=0)
def other_job_under_our_name(world: World, experiment: Experiment) -> None:
    world.gateway.submit(
        JobRequest(
            name=experiment.job_name,
            user="slipway",
            argv=("python", "-c", "pass"),
            cpu=1.0,
            memory="1GB",
            disk="1GB",
            replicas=1,
            gpu_variant=None,
            gpus_per_task=0,
            files={},
            env={},
            timeout_seconds=60,
            max_task_retries=0,
            coscheduled=False,
        )
    )
    call = world.launch(experiment)
    assert call.wait(SECONDS) == exit_codes.REFUSED
    assert "It is not this launch and is left alone" in call.err, call.err


def _other(
    world: World, experiment: Experiment, *, seed: int = 17, priority: str = "interactive"
) -> Experiment:
    name = f"other-{experiment.name}"
    return build_experiment(
        world.home / "others" / name, name, artifact=experiment.artifact, seed=seed, priority=priority
    )
