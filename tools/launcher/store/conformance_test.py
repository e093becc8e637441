"""One suite for both stores, and the suite for a real bucket run against the fake."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.launcher.store.testing import real_bucket_testlib
from tools.launcher.store.testing.conformance_testlib import Place, StoreConformance, fresh_prefix
from tools.launcher.store.testing.fake_gcs_for_test import FakeGcs


@pytest.fixture(scope="module")
def server() -> Iterator[FakeGcs]:
    # Small pages, so that lists have several.
    with FakeGcs(page_size=3) as server:
        yield server


@pytest.fixture(params=["file", "gcs"])
def place(request, tmp_path, server, monkeypatch) -> Place:
    if request.param == "file":
        return Place(f"file://{tmp_path}/store")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    return Place(server.store_url(fresh_prefix()), {"STORAGE_EMULATOR_HOST": server.url})


class TestStores(StoreConformance):
    """Against `file://`, and against `gs://` over HTTP."""


def run_real_bucket_suite(environment, *arguments):
    root = Path(real_bucket_testlib.__file__).parents[4]
    return subprocess.run(
        [sys.executable, real_bucket_testlib.__file__, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_suite_for_a_real_bucket_writes_below_a_fresh_prefix(server):
    before = set(server.objects)
    done = run_real_bucket_suite(
        {"STORAGE_EMULATOR_HOST": server.url, "SLIPWAY_CONFORMANCE_STORE": server.store_url("team/")},
        "-k=written_once",
    )
    assert done.returncode == 0, done.stdout
    (written,) = set(server.objects) - before
    assert written.startswith("team/conformance-") and written.endswith("/a/b")


def test_the_suite_for_a_real_bucket_asks_for_the_bucket():
    done = run_real_bucket_suite({"SLIPWAY_CONFORMANCE_STORE": ""})
    assert done.returncode == 1
    assert done.stderr == (
        "SLIPWAY_CONFORMANCE_STORE is not set: this suite writes to the store it names. Set it to a bucket of "
        "yours, SLIPWAY_CONFORMANCE_STORE=gs://bucket/prefix, and run the test with "
        "--test_env=SLIPWAY_CONFORMANCE_STORE\n"
    )


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
