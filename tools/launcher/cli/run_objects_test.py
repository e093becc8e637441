"""Reading what a run left in buckets: over HTTP, within bounds, and honest about what cannot be read."""

import copy
import json
import sys
import threading

import pytest

from tools.launcher.cli import exit_codes
from tools.launcher.cli.commands import run
from tools.launcher.cli.launch_place import LaunchPlace
from tools.launcher.cli.run_objects import ImpatientObjects, objects_of
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.observe.marinskyrl_leavings_for_test import leavings
from tools.launcher.observe.run_testlib import CHILD_ID, DOCUMENT, Run
from tools.launcher.store.locations import UriError
from tools.launcher.store.object_store import StoreUnavailable
from tools.launcher.store.objects import FolderObjects
from tools.launcher.store.testing.fake_gcs_for_test import BUCKET, FakeGcs


@pytest.fixture
def bucket(monkeypatch, tmp_path):
    from rigging.filesystem import conditional_object

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("SLIPWAY_STORE", "SLIPWAY_CONTROLLER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tools.launcher.cli.launch_cluster.IRIS_GIVE_UP_SECONDS", 0.3)
    with FakeGcs() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        conditional_object._gcs_client.cache_clear()
        yield server
        conditional_object._gcs_client.cache_clear()


def real_run(folder, bucket):
    """A run of two tasks that the real runtime ended well, in the bucket; its cluster is out of reach."""
    document = copy.deepcopy(DOCUMENT)
    document["runtime"] = {"launcher_commit": "a" * 40, "profile": "fsdp"}
    document["ray"] = {"rendezvous_dir": "local://lab/rendezvous"}
    document = json.loads(json.dumps(document).replace("local://lab", f"gs://{BUCKET}"))
    route = {"scheduler": "iris", "controller": "http://127.0.0.1:1"}
    made = Run(folder, document, runtime="marinskyrl", route=route, object_root=None, cluster="far")
    made.submit()
    made.event("step_finished", step="cats@1", global_step=3)
    made.event("succeeded")
    document["run"]["attempt_id"] = made.attempt
    for uri, content in leavings(document, step=3, job_id=CHILD_ID).items():
        bucket.put(uri.removeprefix(f"gs://{BUCKET}/"), content)
    return made


def test_verify_reads_the_bucket_and_records_no_answer_that_it_could_not_read(tmp_path, bucket, capsys):
    cats = real_run(tmp_path / "shared", bucket)
    store = f"--store={cats.store.url}"
    assert run(["verify", "cats", store]) == exit_codes.OK
    out = capsys.readouterr().out
    assert (
        "verified: yes\n  yes  tasks_joined: the head counted 2 tasks and reported success to them (" in out
    )
    events = cats.record().events
    assert events[-1].kind == "verified"
    bucket.answer(403)
    assert run(["verify", "cats", store]) == exit_codes.OK
    out = capsys.readouterr().out
    assert (
        f"verified: no\n  no   tasks_joined: unknown: gs://{BUCKET} cannot be read from here: Forbidden: "
        in out
    )
    assert out.endswith(
        "note: what could not be read may speak for the run, so this answer is not recorded; ask again where "
        "it can be read\n"
        f"note: the answer on record stands: yes, found by {events[-1].by} at {events[-1].at}\n"
    )
    assert cats.record().events == events
    assert run(["status", "cats", store]) == exit_codes.OK
    assert "steps: 3/3\n" in capsys.readouterr().out


def test_without_an_answer_on_record_what_cannot_be_read_is_a_no(tmp_path, bucket, capsys):
    cats = real_run(tmp_path / "shared", bucket)
    bucket.answer(403)
    assert run(["verify", "cats", f"--store={cats.store.url}"]) == exit_codes.FAILED
    assert capsys.readouterr().out.endswith("ask again where it can be read\n")
    assert cats.record().verify_failure is None


def test_a_launch_that_cannot_read_what_its_run_left_does_not_know(tmp_path, bucket, capsys):
    """It said `not verified` of a run that succeeded."""
    cats = real_run(tmp_path / "shared", bucket)
    store = f"--store={cats.store.url}"
    bucket.answer(403)
    assert run(["watch", "cats", store]) == exit_codes.UNKNOWN
    assert capsys.readouterr().err.endswith(
        f"error: {cats.key.short_name} succeeded, and whether it is verified is not known: what it left cannot be "
        "read from here. Ask again where it can: tools/bazel run //tools/launcher -- verify "
        f"{cats.key.short_name} {store}\n"
    )
    # An answer on record is one.
    cats.event("verified", verified=True)
    assert run(["watch", "cats", store]) == exit_codes.OK
    cats.event("verify_failed", verified=False)
    assert run(["watch", "cats", store]) == exit_codes.FAILED


def place(**changes):
    facts = {"cluster": "far", "runtime": "marinskyrl", "store_url": "gs://lab/x", "state": None}
    route = Route(scheduler="iris", controller="http://127.0.0.1:1")
    return LaunchPlace(**facts | {"route": route, "object_root_url": None} | changes)


def test_where_the_objects_of_a_place_are(tmp_path):
    assert isinstance(objects_of(place(object_root_url=f"file://{tmp_path}")), FolderObjects)
    assert isinstance(objects_of(place()), ImpatientObjects)
    elsewhere = place(route=EMBEDDED, runtime="rehearsal", state=tmp_path)
    assert objects_of(elsewhere) is None


class Objects:
    """Answers after `event`, with an error if it is told to."""

    def __init__(self, event, error=None):
        self.event, self.error = event, error

    def read(self, uri):
        self.event.wait(60)
        if self.error is not None:
            raise self.error
        return uri.encode()

    def exists(self, uri):
        return self.read(uri) is not None


def test_a_place_without_an_answer_is_not_waited_for():
    event = threading.Event()
    objects = ImpatientObjects(Objects(event), 0.05)
    for doing, ask in (("read", objects.read), ("look for", objects.exists)):
        with pytest.raises(StoreUnavailable) as caught:
            ask("s3://lab/run/x")
        assert f"store s3://lab: cannot {doing} s3://lab/run/x: no answer for 0.05 s. " in str(caught.value)
    event.set()


def test_answers_and_errors_come_through():
    event = threading.Event()
    event.set()
    assert ImpatientObjects(Objects(event), 60).read("s3://lab/x") == b"s3://lab/x"
    assert ImpatientObjects(Objects(event), 60).exists("s3://lab/x")
    with pytest.raises(UriError):
        ImpatientObjects(Objects(event, UriError("no")), 60).read("x")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
