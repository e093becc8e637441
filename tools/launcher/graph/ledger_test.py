"""The version ledger: what it takes, what it says of a build, and how it is written."""

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.launcher.documents.strict_yaml import DocumentError
from tools.launcher.graph.document_recipe import document_recipe
from tools.launcher.graph.ledger import (
    EarlierPin,
    PinnedVersion,
    RunIdentity,
    VersionLedger,
    compatible_recipes,
    dump_ledger,
    foreign_checkpoints,
    load_ledger,
    merged_ledgers,
    recipe_changed,
    repinned,
)

OLD_RUNTIME, NEW_RUNTIME = "1" * 40, "2" * 40


def build(recipe="a", runtime=OLD_RUNTIME, apart="b", fresh=False, launch="d"):
    return RunIdentity(
        recipe=recipe * 64,
        apart_from_runtime=apart * 64,
        document="c" * 64,
        runtime=runtime,
        launch=launch * 64,
        starts_fresh=fresh,
    )


PIN = repinned(None, build())
ALLOWED = PIN.model_copy(update={"checkpoints": "compatible", "because": "only the logger changed"})
REPIN = build(recipe="e", runtime=NEW_RUNTIME)


def judged(pin, now):
    """(ART-17, ART-06)"""
    return (
        recipe_changed(
            pin, recipe=now.recipe, apart_from_runtime=now.apart_from_runtime, runtime=now.runtime
        ),
        foreign_checkpoints(pin, runtime=now.runtime, starts_fresh=now.starts_fresh),
    )


@pytest.mark.parametrize(
    ("pin", "now", "expected"),
    [
        (PIN, build(), (False, False)),
        (PIN, build(launch="f"), (False, False)),
        (PIN, build(recipe="e"), (True, False)),
        (PIN, build(recipe="e", apart="f"), (True, False)),
        (PIN, REPIN, (False, True)),
        (PIN, build(recipe="e", runtime=NEW_RUNTIME, apart="f"), (True, True)),
        (PIN, build(recipe="e", runtime=NEW_RUNTIME, fresh=True), (False, False)),
        (ALLOWED, REPIN, (False, False)),
        (ALLOWED, build(recipe="e", runtime=NEW_RUNTIME, apart="f"), (True, False)),
        (ALLOWED, build(recipe="e"), (True, False)),
    ],
)
def test_what_the_ledger_says_of_a_build(pin, now, expected):
    assert judged(pin, now) == expected


def test_a_repin_may_take_the_place_of_what_it_follows():
    assert compatible_recipes(None, build()) == compatible_recipes(PIN, build()) == ()
    assert compatible_recipes(PIN, REPIN) == ()
    assert compatible_recipes(ALLOWED, REPIN) == ("a" * 64,)
    assert compatible_recipes(ALLOWED, build(recipe="e")) == ()
    after = repinned(ALLOWED, REPIN)
    assert compatible_recipes(after, REPIN) == ("a" * 64,)
    # Back to the old runtime is a repin like any other.
    assert judged(after, build()) == (False, True) and compatible_recipes(after, build()) == ()
    again = after.model_copy(update={"checkpoints": "compatible", "because": "back again"})
    assert compatible_recipes(again, build()) == ("e" * 64,)


def test_the_leave_of_a_repin_is_used_up():
    after = repinned(ALLOWED, REPIN)
    assert (after.recipe, after.runtime, after.checkpoints, after.because) == (
        "e" * 64,
        NEW_RUNTIME,
        None,
        None,
    )
    (earlier,) = after.earlier
    assert (earlier.recipe, earlier.runtime) == ("a" * 64, OLD_RUNTIME)
    assert earlier.because == "only the logger changed"
    fresh = repinned(PIN, REPIN.model_copy(update={"starts_fresh": True}))
    assert fresh.earlier[0].because == "nothing is taken over: trainer.resume_mode is none"


def test_a_moved_placement_keeps_what_stands_by_hand():
    after = repinned(ALLOWED, build(launch="f"))
    assert after == ALLOWED.model_copy(update={"launch": "f" * 64})
    assert repinned(ALLOWED, build()) == ALLOWED


hexes = st.integers(0, 16**64 - 1).map(lambda number: f"{number:064x}")
commits = hexes.map(lambda digits: digits[:40])
reasons = st.text(st.characters(categories=("L", "N", "P", "S")), max_size=20).map(lambda text: f"{text} so")
earlier_pins = st.builds(EarlierPin, recipe=hexes, runtime=commits, launch=hexes, because=reasons)


@st.composite
def pins(draw):
    because = draw(st.none() | reasons)
    return PinnedVersion(
        recipe=draw(hexes),
        apart_from_runtime=draw(hexes),
        document=draw(hexes),
        runtime=draw(commits),
        launch=draw(hexes),
        checkpoints=None if because is None else "compatible",
        because=because,
        earlier=tuple(draw(st.lists(earlier_pins, max_size=2))),
    )


ledgers = st.dictionaries(
    st.sampled_from(("team/run", "a", "users/x.y/z-1")),
    st.dictionaries(st.sampled_from(("2026.01.15", "2026.01.15.2", "2026.01.15.10", "2025.12.31")), pins()),
).map(lambda versions: VersionLedger(schema=1, versions=versions))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ledger=ledgers)
def test_a_written_ledger_reads_back_and_its_bytes_are_fixed(ledger):
    data = dump_ledger(ledger, header="# a line\n")
    assert load_ledger(data, source="x") == ledger
    turned = {name: dict(reversed(pins.items())) for name, pins in reversed(ledger.versions.items())}
    assert dump_ledger(VersionLedger(schema=1, versions=turned), header="# a line\n") == data


def test_versions_stand_in_the_order_of_their_dates():
    versions = {"a": dict.fromkeys(("2026.01.15.10", "2026.01.15.9", "2025.01.01"), PIN)}
    text = dump_ledger(VersionLedger(schema=1, versions=versions), header="").decode()
    assert [text.index(f"{v}:") for v in ("2025.01.01", "2026.01.15.9", "2026.01.15.10")] == sorted(
        text.index(f"{v}:") for v in ("2025.01.01", "2026.01.15.9", "2026.01.15.10")
    )


GOOD = dump_ledger(VersionLedger(schema=1, versions={"team/run": {"2026.11.30": PIN}}), header="").decode()
FIX = "Correct it by hand, or take back the change and run the experiment's :pin"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "x.yaml: the ledger has no `schema`. Write `schema: 1`, or delete the file, then run :pin",
        ),
        (
            "- 1",
            "x.yaml: the ledger is a list, not a mapping. Take back the change and run the experiment's :pin",
        ),
        (
            "versions: {}\n",
            "x.yaml: the ledger has no `schema`. Write `schema: 1`, or delete the file, then run :pin",
        ),
        ("schema: 2\n", f"x.yaml:1:1: schema: Input should be 1, got 2. {FIX}"),
        (
            GOOD + "  team/run: {}\n",
            "x.yaml:10:3: the key 'team/run' appears twice in one mapping. Keep one of them",
        ),
        (
            GOOD.replace("a" * 64, "a" * 63),
            (
                "x.yaml:5:7: versions.team/run.2026.11.30.recipe: String should match pattern '^[0-9a-f]{64}$', "
                f"got '{'a' * 63}'. {FIX}"
            ),
        ),
        (
            GOOD.replace("2026.11.30", "dev"),
            (
                "x.yaml:4:5: versions.team/run.dev: this version is not fixed, and what changes is never pinned: write "
                f"YYYY.MM.DD, got 'dev'. {FIX}"
            ),
        ),
        (
            GOOD.replace("2026.11.30", "2026.11.31"),
            (
                "x.yaml:4:5: versions.team/run.2026.11.31: this version 2026-11 has no day 31: write YYYY.MM.DD, got "
                f"'2026.11.31'. {FIX}"
            ),
        ),
        (
            GOOD.replace("team/run", "team//run"),
            (
                "x.yaml:3:3: versions.team//run: this artifact name contains '//': write one such as team/experiment, got "
                f"'team//run'. {FIX}"
            ),
        ),
        (
            GOOD + "      because: so\n",
            (
                "x.yaml:4:5: versions.team/run.2026.11.30: `checkpoints: compatible` and `because` stand together: write "
                f"both or neither. {FIX}"
            ),
        ),
        (
            GOOD + "      checkpoints: yes it is\n      because: ' '\n",
            (
                "x.yaml:10:7: versions.team/run.2026.11.30.checkpoints: Input should be 'compatible', got 'yes it is' "
                f"(and 1 more). {FIX}"
            ),
        ),
        (
            GOOD + "      by: ann\n",
            "x.yaml:10:7: versions.team/run.2026.11.30.by: Extra inputs are not permitted, got 'ann'. " + FIX,
        ),
        (
            GOOD + "      earlier:\n      - recipe: x\n",
            (
                "x.yaml:11:9: versions.team/run.2026.11.30.earlier[0].recipe: String should match pattern "
                f"'^[0-9a-f]{{64}}$', got 'x' (and 3 more). {FIX}"
            ),
        ),
    ],
)
def test_a_faulty_ledger_is_refused_by_line_field_and_rule(text, message):
    with pytest.raises(DocumentError) as refused:
        load_ledger(text.encode(), source="x.yaml")
    assert str(refused.value) == message


def test_ledgers_that_both_have_a_version_are_not_merged():
    one = VersionLedger(schema=1, versions={"a": {"2026.11.30": PIN}})
    two = VersionLedger(schema=1, versions={"a": {"2026.12.01": PIN}, "b": {"2026.11.30": PIN}})
    both = merged_ledgers({"one": one, "two": two})
    assert (
        both.pinned("a", "2026.11.30")
        == both.pinned("a", "2026.12.01")
        == both.pinned("b", "2026.11.30")
        == PIN
    )
    with pytest.raises(
        DocumentError, match=r"three: a@2026.11.30 stands in one as well. Give one of the two files"
    ):
        merged_ledgers({"one": one, "two": two, "three": one})


DOCUMENT = {
    "run": {"id": "a-2026.11.30", "attempt_id": "0", "seed": 1, "mode": "train", "export_hf": True},
    "runtime": {"launcher_commit": OLD_RUNTIME, "profile": "fsdp", "task_env": {}},
    "iris": {"cluster": "x", "allocation": {"num_nodes": 1, "cpu": 4}},
    "artifacts": {"export_root": "s3://x", "resume_checkpoint_count": 2},
    "inputs": {
        "model": {"uri": "s3://m", "identity": "m@1:2"},
        "train_data": [{"uri": "s3://d", "kind": "x"}],
    },
    "skyrl": {"trainer": {"resume_mode": "latest", "epochs": 1}},
}


def with_value(path, value):
    document = {**DOCUMENT}
    node = document
    *sections, leaf = path.split(".")
    for section in sections:
        node[section] = {**node[section]}
        node = node[section]
    node[leaf] = value
    return document


@pytest.mark.parametrize(
    ("path", "moves"),
    [
        ("run.attempt_id", False),
        ("runtime.launcher_commit", False),
        ("runtime.profile", False),
        ("iris.cluster", False),
        ("iris.allocation.cpu", False),
        ("artifacts.export_root", False),
        ("inputs.model.uri", False),
        ("skyrl.trainer.resume_mode", False),
        ("run.seed", True),
        ("runtime.task_env", True),
        ("iris.allocation.num_nodes", True),
        ("artifacts.resume_checkpoint_count", True),
        ("inputs.model.identity", True),
        ("inputs.train_data", True),
        ("skyrl.trainer.epochs", True),
        ("skyrl.generator", True),
    ],
)
def test_a_documents_recipe_moves_with_identity_alone(path, moves):
    assert (document_recipe(with_value(path, "other")) != document_recipe(DOCUMENT)) is moves


def test_a_document_of_any_form_has_a_recipe():
    assert document_recipe({}) != document_recipe({"skyrl": 3, "inputs": None, "iris": []})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
