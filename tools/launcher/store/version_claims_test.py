"""One version means one recipe for everybody: claims, repins, and many claimers at once."""

import json
import multiprocessing
import sys

import pytest

from tools.launcher.store.file_store import FileStore
from tools.launcher.store.open_store import open_store
from tools.launcher.store.version_claims import (
    ClaimRefused,
    VersionClaim,
    claim_versions,
    latest_claim,
)

OLD, NEW, OTHER = "a" * 64, "b" * 64, "c" * 64
NAME, VERSION = "team/run", "2026.11.30"
FOLDER = f"versions/{NAME}/{VERSION}/claims/"


def claim(fingerprint=OLD, *, runtime="1" * 40, compatible=(), name=NAME, version=VERSION, repins=0):
    return VersionClaim(
        name=name,
        version=version,
        fingerprint=fingerprint,
        runtime_commit=runtime,
        launch="d" * 64,
        compatible=compatible,
        repins=repins,
    )


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path / "store")


def test_a_free_version_is_claimed_once(store):
    claim_versions(store, [claim()], "ann@desk")
    claim_versions(store, [claim()], "bob@desk")
    assert store.list("versions/") == (f"{FOLDER}0001.json",)
    content = json.loads(store.get(f"{FOLDER}0001.json"))
    assert content.pop("at").endswith("Z")
    assert content == {
        "schema": 1,
        "name": NAME,
        "version": VERSION,
        "fingerprint": OLD,
        "runtime": "1" * 40,
        "launch": "d" * 64,
        "repins": 0,
        "by": "ann@desk",
    }


def test_another_recipe_is_refused_with_both_digests_who_and_when(store):
    claim_versions(store, [claim()], "ann@desk")
    at = latest_claim(store, NAME, VERSION).at
    with pytest.raises(ClaimRefused) as refused:
        claim_versions(store, [claim(OTHER)], "bob@desk")
    assert str(refused.value) == (
        f"team/run@2026.11.30 is claimed for recipe aaaaaaaaaaaa by ann@desk since {at}; this launch has "
        "cccccccccccc. Publish a new version, or build what was claimed"
    )
    with pytest.raises(ClaimRefused) as refused:
        claim_versions(store, [claim(NEW, runtime="2" * 40)], "bob@desk")
    assert "aaaaaaaaaaaa, runtime 111111111111 by ann@desk" in str(refused.value)
    assert str(refused.value).endswith(
        "this launch has bbbbbbbbbbbb, runtime 222222222222. Publish a new version, or build what was claimed, or "
        "say in versions.lock.yaml why its checkpoints are compatible (docs/versions.md)"
    )


def test_a_compatible_repin_follows_and_the_old_runtime_is_over(store):
    claim_versions(store, [claim()], "ann")
    repin = claim(NEW, runtime="2" * 40, compatible=(OLD,), repins=1)
    claim_versions(store, [repin], "bob")
    claim_versions(store, [repin], "ann")
    assert store.list(FOLDER) == (f"{FOLDER}0001.json", f"{FOLDER}0002.json")
    assert latest_claim(store, NAME, VERSION).by == "bob"
    with pytest.raises(ClaimRefused, match="claimed for recipe bbbbbbbbbbbb, runtime 222222222222 by bob"):
        claim_versions(store, [claim()], "ann")


def test_a_checkout_that_has_not_seen_the_way_back_is_refused(store):
    """Breaker, issue 4: there and back again, and then a stale checkout at the runtime in between."""
    between = claim(NEW, runtime="2" * 40, compatible=(OLD,), repins=1)
    claim_versions(store, [claim()], "ann")
    claim_versions(store, [between], "bob")
    claim_versions(store, [claim(compatible=(NEW,), repins=2)], "cy")
    with pytest.raises(ClaimRefused) as refused:
        claim_versions(store, [between], "dan")
    at = latest_claim(store, NAME, VERSION).at
    assert str(refused.value) == (
        f"team/run@2026.11.30 was repinned 2 times when cy claimed it at {at} for recipe aaaaaaaaaaaa; the ledger of "
        "this build knows 1. Update versions.lock.yaml (git pull) and build again"
    )
    claim_versions(store, [claim()], "eve")  # the recipe that holds, by whatever ledger
    assert len(store.list(FOLDER)) == 3


def test_a_way_back_that_nobody_launched_in_between_is_claimed_too(store):
    claim_versions(store, [claim()], "ann")
    claim_versions(store, [claim(compatible=(NEW,), repins=2)], "cy")
    with pytest.raises(ClaimRefused, match="was repinned 2 times when cy claimed it"):
        claim_versions(store, [claim(NEW, compatible=(OLD,), repins=1)], "dan")


def test_nothing_is_claimed_when_one_of_several_is_refused(store):
    claim_versions(store, [claim(name="team/score")], "ann")
    with pytest.raises(ClaimRefused, match="team/score"):
        claim_versions(store, [claim(), claim(OTHER, name="team/score")], "bob")
    assert latest_claim(store, NAME, VERSION) is None


def test_an_artifact_below_another_has_claims_of_its_own(store):
    claim_versions(store, [claim(), claim(OTHER, name=f"{NAME}/{VERSION}/claims")], "ann")
    assert latest_claim(store, NAME, VERSION).fingerprint == OLD


def test_what_cannot_be_read_or_named_is_refused(store):
    store.put_if_absent(f"{FOLDER}0001.json", b'{"schema": 1}')
    with pytest.raises(ClaimRefused, match=r"claims/0001\.json cannot be read: name: Field required\. It is"):
        claim_versions(store, [claim()], "ann")
    with pytest.raises(ClaimRefused, match="équipe/run@2026.11.30 cannot be claimed: object key"):
        claim_versions(store, [claim(name="équipe/run")], "ann")


def test_a_version_that_is_repinned_for_ever_is_refused(store, monkeypatch):
    monkeypatch.setattr("tools.launcher.store.version_claims.MAX_CLAIMS", 1)
    claim_versions(store, [claim()], "ann")
    with pytest.raises(ClaimRefused, match="was repinned 0 times. Publish a new version"):
        claim_versions(store, [claim(NEW, compatible=(OLD,), repins=1)], "ann")


def _claimer(url, fingerprint, compatible, by, start, answers):
    """One person's launch, in a process of its own."""
    store = open_store(url)
    start.wait()
    try:
        claim_versions(store, [claim(fingerprint, compatible=compatible, repins=len(compatible))], by)
        answers.put((by, "claimed", ""))
    except ClaimRefused as refused:
        answers.put((by, "refused", str(refused)))


def _together(url, claimers):
    """Run all claimers at once; return who -> (answer, message)."""
    context = multiprocessing.get_context("fork")
    start, answers = context.Barrier(len(claimers)), context.Queue()
    processes = [
        context.Process(target=_claimer, args=(url, *arguments, start, answers)) for arguments in claimers
    ]
    for process in processes:
        process.start()
    found = {by: (answer, message) for by, answer, message in (answers.get() for _ in processes)}
    for process in processes:
        process.join()
    return found


def test_of_eight_recipes_at_once_exactly_one_wins(store):
    claimers = [(f"{n:x}" * 64, (), f"person-{n}") for n in range(1, 9)]
    found = _together(store.url, claimers)
    winners = [by for by, (answer, _) in found.items() if answer == "claimed"]
    assert len(winners) == 1 and store.list(FOLDER) == (f"{FOLDER}0001.json",)
    held = latest_claim(store, NAME, VERSION)
    assert held.by == winners[0]
    for by, (answer, message) in found.items():
        assert by == held.by or (answer == "refused" and f"by {held.by} since {held.at}" in message)


def test_eight_with_one_recipe_all_have_it(store):
    found = _together(store.url, [(OLD, (), f"person-{n}") for n in range(8)])
    assert {answer for answer, _ in found.values()} == {"claimed"}
    assert store.list(FOLDER) == (f"{FOLDER}0001.json",)


def test_of_eight_repins_at_once_exactly_one_follows(store):
    claim_versions(store, [claim()], "ann")
    found = _together(store.url, [(f"{n:x}" * 64, (OLD,), f"person-{n}") for n in range(1, 9)])
    assert sorted(answer for answer, _ in found.values()) == ["claimed"] + ["refused"] * 7
    assert len(store.list(FOLDER)) == 2


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
