"""From card, flags and environment to a place, or to a sentence that says what is missing."""

import argparse
import sys
from pathlib import Path

import pytest

from tools.launcher.catalog.load import load_cluster_card
from tools.launcher.cli.launch_place import launch_place, rehearsal_place
from tools.launcher.cli.launch_problems import ControllerAddressError, PlaceRefused
from tools.launcher.iris.route import EMBEDDED, Route
from tools.launcher.store.open_store import StoreAddressError

IRIS = {
    "cluster": "cw-us-east-02a",
    "cluster_config": "lib/iris/config/cw-us-east-02a.yaml",
    "target_cluster": "cw-us-east-02a",
    "parent_cluster_config": "lib/iris/config/marin.yaml",
}
HOME = {"XDG_STATE_HOME": "/state"}


def card(name, **changes):
    source = f"third_party/clusters/{name}.yaml"
    return load_cluster_card(Path(source).read_bytes(), source=source).model_copy(update=changes)


LOCAL, REMOTE = card("local"), card("cw_us_east_02a")


def flags(store=None, controller=None):
    return argparse.Namespace(store=store, controller=controller, dry_run=False)


def test_the_local_cluster_is_the_users_own():
    place = launch_place(LOCAL, {}, flags(), HOME)
    assert (place.cluster, place.route, place.runtime) == ("local", EMBEDDED, "rehearsal")
    assert (place.is_local, place.state) == (True, Path("/state/slipway"))
    assert place.store_url == "file:///state/slipway/store"
    assert place.keeps_own_store
    assert not launch_place(LOCAL, {}, flags("file:///elsewhere"), HOME).keeps_own_store
    assert place.object_root_url == "file:///state/slipway/objects"
    assert place.objects().path("s3://b/k") == Path("/state/slipway/objects/s3/b/k")


def test_a_cluster_of_others_is_reached_through_its_hub():
    place = launch_place(REMOTE, IRIS, flags("gs://team/slipway/"), {})
    assert (place.cluster, place.runtime, place.is_local) == ("cw-us-east-02a", "marinskyrl", False)
    assert place.route == Route(
        scheduler="iris", config="lib/iris/config/marin.yaml", target_cluster="cw-us-east-02a"
    )
    assert (place.store_url, place.object_root_url, place.objects()) == ("gs://team/slipway", None, None)


def test_without_a_hub_the_clusters_own_configuration_counts():
    iris = {**IRIS, "target_cluster": None, "parent_cluster_config": None}
    place = launch_place(REMOTE, iris, flags("gs://team/x"), {})
    assert place.route == Route(scheduler="iris", config="lib/iris/config/cw-us-east-02a.yaml")


def test_the_store_is_looked_for_in_flag_environment_card_and_then_the_state_folder():
    environ = {**HOME, "SLIPWAY_STORE": "gs://environ/x"}
    with_store = REMOTE.model_copy(update={"store": "gs://card/x"})
    assert launch_place(with_store, IRIS, flags("gs://flag/x"), environ).store_url == "gs://flag/x"
    assert launch_place(with_store, IRIS, flags(), environ).store_url == "gs://environ/x"
    assert launch_place(with_store, IRIS, flags(), HOME).store_url == "gs://card/x"
    assert launch_place(LOCAL, {}, flags(), environ).store_url == "gs://environ/x"


def test_a_rehearsal_never_gets_into_the_store_of_real_runs_by_itself():
    environ = {**HOME, "SLIPWAY_STORE": "gs://environ/x"}
    assert rehearsal_place(flags(), environ).store_url == "file:///state/slipway/store"
    assert rehearsal_place(flags("gs://flag/x"), environ).store_url == "gs://flag/x"


def test_a_controller_of_ones_own_takes_the_place_of_the_configuration():
    environ = {"SLIPWAY_CONTROLLER": "http://127.0.0.1:10000"}
    assert (
        launch_place(REMOTE, IRIS, flags("gs://team/x"), environ).route.controller == "http://127.0.0.1:10000"
    )
    flag = "https://iris.example.org"
    assert launch_place(REMOTE, IRIS, flags("gs://team/x", flag), environ).route.controller == flag
    # The local Iris is found by itself; the variable is for other launches of the same shell.
    assert launch_place(LOCAL, {}, flags(), {**HOME, **environ}).route == EMBEDDED


def test_tasks_get_the_address_of_another_storage_server_and_nothing_else():
    environ = {**HOME, "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1", "WANDB_API_KEY": "hidden"}
    in_bucket = launch_place(LOCAL, {}, flags("gs://team/x"), environ)
    assert in_bucket.store_variables(environ) == {"STORAGE_EMULATOR_HOST": "http://127.0.0.1:1"}
    assert in_bucket.store_variables(HOME) == {}
    assert launch_place(LOCAL, {}, flags(), environ).store_variables(environ) == {}


@pytest.mark.parametrize(
    ("of", "given", "sentence"),
    [
        (
            REMOTE,
            flags(),
            (
                "the cluster cw-us-east-02a has no store: bundle, record and claims must lie where its jobs "
                "and everybody else can read them. Give --store=gs://bucket/prefix, set $SLIPWAY_STORE, or "
                "write `store:` into its cluster card"
            ),
        ),
        (
            REMOTE,
            flags("file:///home/ann/store"),
            (
                "store file:///home/ann/store: the coordinator runs on the cluster cw-us-east-02a and cannot "
                "read a folder of this machine. Give --store=gs://bucket/prefix"
            ),
        ),
        (
            LOCAL,
            flags(controller="http://127.0.0.1:10000"),
            (
                "--controller=http://127.0.0.1:10000: the cluster local is the local Iris, which the "
                "launcher finds and starts itself. Leave the flag out"
            ),
        ),
        (
            card("cw_us_east_02a", scheduler=None),
            flags("gs://team/x"),
            (
                "the cluster card 'cw-us-east-02a' does not say its scheduler, so nothing can be submitted "
                "there. Write `scheduler: iris` into the card"
            ),
        ),
        (
            REMOTE,
            flags("gs://team/x", "127.0.0.1:10000"),
            (
                "controller '127.0.0.1:10000' is not the address of an Iris controller. Give one such as "
                "http://127.0.0.1:10000"
            ),
        ),
        (
            REMOTE,
            flags("gs://team/x", "http://127.0.0.1:port"),
            (
                "controller 'http://127.0.0.1:port' is not the address of an Iris controller. Give one such "
                "as http://127.0.0.1:10000"
            ),
        ),
    ],
)
def test_no_place(of, given, sentence):
    with pytest.raises(PlaceRefused) as raised:
        launch_place(of, IRIS, given, HOME)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "controller",
    [
        "http://[::1",
        "http://127.0.0.1:1\n",
        "http://a b:1",
        "http://ann:hidden@127.0.0.1:1",
        "http://a?b",
        "ftp://a",
    ],
)
def test_a_controller_that_is_no_address_is_wrong_usage(controller):
    """Breaker, issue 4: a traceback, and a password in the sentence."""
    with pytest.raises(ControllerAddressError) as raised:
        launch_place(REMOTE, IRIS, flags("gs://team/x", controller), HOME)
    assert str(raised.value).startswith("controller 'http://…@127.0.0.1:1'") or "@" not in controller
    assert "hidden" not in str(raised.value)


def test_half_an_address_is_no_store():
    """Breaker, issue 4: these were tracebacks."""
    for address in ("http://[bad", "file://[bad"):
        with pytest.raises((StoreAddressError, PlaceRefused)):
            launch_place(REMOTE, IRIS, flags(address), HOME)
        with pytest.raises(StoreAddressError):
            launch_place(LOCAL, {}, flags(address), HOME)


def test_an_address_that_is_no_store():
    with pytest.raises(StoreAddressError, match="the address has no bucket. Use gs://bucket/prefix"):
        launch_place(REMOTE, IRIS, flags("gs:team/x"), {})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
