"""The conformance suite against the store that SLIPWAY_CONFORMANCE_STORE names; see docs/stores.md."""

import os
import sys

import pytest

from tools.launcher.store.testing.conformance_testlib import Place, StoreConformance, fresh_prefix

VARIABLE = "SLIPWAY_CONFORMANCE_STORE"


@pytest.fixture
def place() -> Place:
    """A store below a prefix nobody used before, so that nothing that exists is met."""
    url = os.environ.get(VARIABLE, "")
    return Place(f"{url.removesuffix('/')}/{fresh_prefix()}")


class TestRealBucket(StoreConformance):
    """All of it; an object is left behind for each write."""


if __name__ == "__main__":
    if not os.environ.get(VARIABLE):
        sys.exit(
            f"{VARIABLE} is not set: this suite writes to the store it names. Set it to a bucket of yours, "
            f"{VARIABLE}=gs://bucket/prefix, and run the test with --test_env={VARIABLE}"
        )
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
