"""A store that refuses, fails, is slow, answers in halves, or holds what it should not, at each call of a launcher."""

from collections.abc import Callable

from tests.faults.cases_testlib import Catalogue
from tests.faults.experiment_for_test import Experiment
from tests.faults.launcher_cases_testlib import READS, WRITES
from tests.faults.world_testlib import SECONDS, World
from tools.launcher.cli import exit_codes
from tools.launcher.store.testing.gcs_faults_for_test import Method

catalogue = Catalogue()
Inject = Callable[[World, Experiment], object]


def _launch_under(inject: Inject, *, ends: int, says: str = "") -> Callable[[World, Experiment], None]:
    def act(world: World, experiment: Experiment) -> None:
        inject(world, experiment)
        call = world.launch(experiment, "--detach")
        code = call.wait(SECONDS)
        assert code == ends, f"exit status {code}, not {ends}:\n{call.said()}"
        assert says in call.err and "Traceback" not in call.err, call.err

    return act


def _answer(status: int, method: Method, key: Callable[[Experiment], str], count: int) -> Inject:
    return lambda world, experiment: world.gcs.answer(status, method, key(experiment), count)


catalogue.add(
    "denied-reading-records",
    _launch_under(
        _answer(403, "list", READS["records"], 1), ends=exit_codes.UNKNOWN, says="access is denied"
    ),
)
for _name, _key in WRITES.items():
    if _name == "verified":
        continue
    catalogue.add(
        f"denied-writing-{_name}",
        _launch_under(_answer(403, "insert", _key, 1), ends=exit_codes.UNKNOWN, says="access is denied"),
    )
catalogue.add(
    "busy-writing-intent", _launch_under(_answer(503, "insert", WRITES["intent"], 2), ends=exit_codes.OK)
)
catalogue.add(
    "slow-at-every-call",
    _launch_under(lambda w, x: w.gcs.delay(0.3, None, x.name, 30), ends=exit_codes.OK),
)
catalogue.add("list-cut-off", _launch_under(lambda w, x: w.gcs.cut("list", x.records, 1), ends=exit_codes.OK))
catalogue.add(
    "event-read-in-half", _launch_under(lambda w, x: w.gcs.truncate(x.event(1), 1), ends=exit_codes.OK)
)
catalogue.add(
    "event-read-damaged-twice",
    _launch_under(lambda w, x: w.gcs.damage(x.event(1), 2), ends=exit_codes.UNKNOWN, says="checksum"),
)


@catalogue.case()
def store_away_for_long(world: World, experiment: Experiment) -> None:
    away = world.gcs.answer(503, "insert", experiment.event(1))
    call = world.launch(experiment)
    assert call.wait(SECONDS) == exit_codes.UNKNOWN
    away.left = 0
    assert "tried for 10 seconds" in call.err, call.err
    assert world.jobs_of(experiment) == ()


@catalogue.case()
def other_bytes_under_the_bundles_digest(world: World, experiment: Experiment) -> None:
    key = f"faults/bundles/sha256/{experiment.bundle_digest}"
    world.gcs.put(key, b"not what the digest says")
    call = world.launch(experiment)
    assert call.wait(SECONDS) == exit_codes.UNKNOWN
    assert "is damaged" in call.err, call.err
    assert world.jobs_of(experiment) == () and world.kinds(experiment) == []
    world.gcs.remove(key)


@catalogue.case()
def event_of_a_newer_launcher_in_the_next_place(world: World, experiment: Experiment) -> None:
    hold = world.gcs.hold("insert", experiment.event(2))
    call = world.launch(experiment, "--detach")
    hold.wait_reached(SECONDS)
    (intent,) = (data for name, data in world.gcs.objects.items() if experiment.event(1) in name)
    note = intent.replace(b'"kind":"intent"', b'"kind":"a_later_word"').replace(b'"seq":1', b'"seq":2')
    world.gcs.put(f"faults/{experiment.event(2)}.json", note)
    hold.release()
    assert call.wait(SECONDS) == exit_codes.OK, call.said()
