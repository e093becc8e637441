"""Launches on record as sides of a `diff`."""

from collections.abc import Mapping
from typing import Any

from tools.launcher.cli.diff_found import Found, NoSuchSide, json_mapping
from tools.launcher.cli.run_place import store_of
from tools.launcher.cli.run_selection import find_run, short_name
from tools.launcher.store.bundles import BUNDLE_PREFIX, unpack
from tools.launcher.store.content import get_content


def of_digest(digest: str, name: str, flags: Any, environ: Mapping[str, str]) -> Found:
    """Return the newest run with a launch digest.

    Args:
        digest: the beginning of it.
        name: as the side was asked for.
        flags: `store` is read.
        environ: the process environment.

    Raises:
        NoSuchSide: no launch has it, or several.
        StoreError: as `of_run`.
    """
    store = store_of(flags, environ)
    places = {tuple(key.split("/")[1:3]) for key in store.list("runs/") if key.count("/") > 2}
    fitting = sorted(place for place in places if place[1].startswith(digest))
    if not fitting:
        raise NoSuchSide(
            f"sha256:{digest}: no launch with this digest is on record in {store.url}. Name its --store"
        )
    if len({place[1] for place in fitting}) > 1:
        known = ", ".join(f"{experiment}/{found[:12]}" for experiment, found in fitting)
        raise NoSuchSide(f"sha256:{digest} fits several launches: {known}. Give more digits")
    return of_run("/".join(fitting[0]), name, flags, environ)


def of_run(wanted: str, name: str, flags: Any, environ: Mapping[str, str]) -> Found:
    """Return the newest run that fits `wanted`, with the files of its bundle.

    Args:
        wanted: see `run_selection`.
        name, flags, environ: as in `of_digest`.

    Raises:
        NoSuchSide: its record names no bundle.
        NoSuchRun: nothing fits.
        StoreError: the store failed, or the bundle is damaged.
    """
    store = store_of(flags, environ)
    record = find_run(store, wanted)
    if not record.bundle_digest:
        raise NoSuchSide(
            f"{name}: the record of {short_name(record)} names no bundle. Name the document itself"
        )
    bundle = unpack(get_content(store, BUNDLE_PREFIX, record.bundle_digest))
    try:
        graph, plan = json_mapping(bundle.graph_json, "graph"), json_mapping(bundle.plan_json, "plan")
    except (ValueError, RecursionError) as error:
        raise NoSuchSide(
            f"{name}: the bundle of {short_name(record)} cannot be read ({error}). Name the document itself"
        ) from None
    return Found(
        name,
        f"{short_name(record)}, launched {record.when} by {record.who}",
        bundle.launch_yaml,
        graph=graph,
        plan=plan,
        recipe=record.recipe_digest or None,
    )
