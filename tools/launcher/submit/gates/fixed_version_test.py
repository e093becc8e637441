import sys

import pytest

from tools.launcher.submit.gates.fixed_version import VersionFacts, fixed_version
from tools.launcher.submit.gates.labels import experiment_name, verb_target


def facts(*made: str, pinned: bool | None = True, label: str = "//experiments/x:x") -> VersionFacts:
    return VersionFacts(label=label, step=made[0], made=made, pinned=pinned)


@pytest.mark.parametrize(
    ("pinned", "found"), [(True, "x@2026.11.30 is fixed and pinned"), (None, "x@2026.11.30 is fixed")]
)
def test_a_fixed_version_passes(pinned, found):
    gate = fixed_version(facts("x@2026.11.30", pinned=pinned))
    assert (gate.state, gate.found) == ("passed", found)


def test_a_mutable_version_names_the_step_and_the_way_to_a_fixed_one():
    gate = fixed_version(facts("x@dev", "model@2026.11.30", "score@ada-dev", pinned=None))
    assert gate.state == "missing"
    assert gate.found == "x@dev, score@ada-dev: a mutable version is for the local cluster only"
    assert gate.fix == (
        'write version = "YYYY.MM.DD" (a day, with .N for a second one) at //experiments/x:x, '
        "then: tools/bazel "
        "run //experiments/x:pin"
    )


def test_a_version_that_nobody_pinned():
    gate = fixed_version(facts("x@2026.11.30", pinned=False, label="//experiments/x:x_smoke"))
    assert gate.state == "missing"
    assert gate.found == "x@2026.11.30 is not pinned in versions.lock.yaml"
    assert gate.fix == "tools/bazel run //experiments/x:x_smoke.pin, then commit versions.lock.yaml"


@pytest.mark.parametrize(
    ("label", "target", "name"),
    [
        ("//experiments/x:x", "//experiments/x:launch", "x"),
        ("//experiments/x:y", "//experiments/x:y.launch", "y"),
        ("//x:x", "//x:launch", "x"),
        ("//:x", "//:x.launch", "x"),
    ],
)
def test_verbs_are_bare_where_the_experiment_is_called_like_its_package(label, target, name):
    assert verb_target(label, "launch") == target
    assert experiment_name(label) == name


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
