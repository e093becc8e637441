"""Where a launch came from: an in-toto statement with a SLSA provenance predicate, beside the record.

It is a function of the run's record and its bundle, so whichever launcher writes it first writes the same, and
one that was killed before it wrote is made up for by the next call. docs/provenance.md describes every field;
https://in-toto.io/Statement/v1 and https://slsa.dev/provenance/v1 are the formats.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from tools.launcher.documents.canonical import canonical_json, sha256_hex
from tools.launcher.documents.strict_yaml import load_yaml
from tools.launcher.store.bundles import LaunchBundle
from tools.launcher.store.object_store import ObjectConflict, ObjectStore
from tools.launcher.store.records import RunKey, RunRecord, record_prefix

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "urn:slipway:build-type:launch:v1"
BUILDER_ID: Final = "urn:slipway:builder:launcher:unsigned"
LEVEL: Final = "unsigned: SLSA Build L1 at most"

RUNTIME_REPOSITORY: Final = "git+https://github.com/marin-community/MarinSkyRL"

# What the call that submitted says of itself.
_OF_THE_CALL: Final = ("code", "gates", "overrides")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_HUB_NAME = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")


def provenance_key(key: RunKey) -> str:
    """Return the object key of a run's statement."""
    return f"{record_prefix(key).removesuffix('events/')}provenance.json"


def write_provenance(store: ObjectStore, record: RunRecord, bundle: LaunchBundle) -> None:
    """Write the run's statement, unless one is there: then that one stays.

    Args:
        store: where the record is.
        record: opened by an `intent` event.
        bundle: of the run.

    Raises:
        StoreError: the store failed.
    """
    data = canonical_json(provenance_statement(record, bundle)) + b"\n"
    try:
        store.put_if_absent(provenance_key(record.key), data)
    except ObjectConflict:
        # Another version of the launcher was first. What was said about a launch is not said anew.
        return


def provenance_statement(record: RunRecord, bundle: LaunchBundle) -> dict[str, Any]:
    """Return the statement about a run. Names of credentials may be in it, values are not.

    Args:
        record: opened by an `intent` event.
        bundle: of the run.
    """
    intent = _as_submitted(record)
    document = load_yaml(bundle.launch_yaml, source="launch.yaml")
    graph, plan = json.loads(bundle.graph_json), json.loads(bundle.plan_json)
    return {
        "_type": STATEMENT_TYPE,
        "subject": _subjects(record, bundle, intent),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": _without_nothing(
                    {
                        "experiment": graph.get("experiment"),
                        "version": plan.get("version"),
                        "options": plan.get("options"),
                        "stage": record.stage,
                        "cluster": record.cluster,
                        "ordinal": record.key.ordinal,
                    }
                ),
                "internalParameters": _without_nothing(
                    {
                        "runtime": record.runtime,
                        "gates": intent.get("gates"),
                        "overrides": sorted(intent.get("overrides") or {}),
                        "authorizedBy": _who(intent.get("authorized")),
                        "forwardedNames": list(record.forwarded_names),
                    }
                ),
                "resolvedDependencies": [
                    *_runtime(record, plan),
                    *_inputs(document.get("inputs") or {}, graph),
                    *_source(record),
                ],
            },
            "runDetails": {
                "builder": {
                    "id": BUILDER_ID,
                    "version": {"slipway": f"sha256:{intent['code']}"} if "code" in intent else {},
                },
                "metadata": _without_nothing(
                    {
                        "invocationId": _invocation(record),
                        "startedOn": record.when,
                        "slipway_level": LEVEL,
                        "slipway_launchedBy": record.who,
                        "slipway_sourceNote": intent.get("source_note") or None,
                    }
                ),
            },
        },
    }


def _as_submitted(record: RunRecord) -> dict[str, Any]:
    """The intent's facts; where another call submitted, with code and gates of its own, those."""
    facts = dict(next((event.facts for event in record.events if event.kind == "intent"), {}))
    for event in record.events:
        if event.kind == "submitted":  # Besides the one that submitted: whoever found the job.
            facts |= {name: event.facts[name] for name in _OF_THE_CALL if name in event.facts}
    return facts


def _subjects(record: RunRecord, bundle: LaunchBundle, intent: dict[str, Any]) -> list[dict[str, Any]]:
    canonical = {"of": "canonical JSON of its values"}
    digests = [
        ("launch.yaml", sha256_hex(bundle.launch_yaml), None),
        ("launch", record.launch_digest, canonical),
        ("recipe", record.recipe_digest, canonical),
        ("bundle", record.bundle_digest, None),
        ("code", intent.get("code"), None),
    ]
    return [
        {
            "name": f"{record.key.experiment}/{name}",
            "digest": {"sha256": digest},
            **({"annotations": notes} if notes else {}),
        }
        for name, digest, notes in digests
        if digest
    ]


def _runtime(record: RunRecord, plan: dict[str, Any]) -> Iterable[dict[str, Any]]:
    commit = record.runtime_commit
    if commit is None:
        return
    known = plan.get("runtime") or {}
    yield {
        "name": "runtime",
        "uri": f"{RUNTIME_REPOSITORY}@{commit}",
        "digest": {"gitCommit": commit},
        "annotations": _without_nothing(
            {"manifest": known.get("manifest"), "profile": known.get("profile"), "ranAs": record.runtime}
        ),
    }


def _inputs(inputs: dict[str, Any], graph: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Model, tokenizer and data. An identity is of how an artifact was made, not of its bytes: an annotation."""
    fingerprints = {step.get("identity"): step.get("fingerprint") for step in graph.get("steps") or []}
    model = inputs.get("model") or {}
    sources = [("model", model)]
    sources += [
        ("data", item) for kind in ("train_data", "validation_data") for item in inputs.get(kind) or []
    ]
    seen: set[tuple[str, str]] = set()
    for name, item in sources:
        uri, identity = item.get("uri"), item.get("identity")
        if uri is None or (name, uri) in seen:
            continue
        seen.add((name, uri))
        notes = _without_nothing({"identity": identity, "fingerprint": fingerprints.get(identity)})
        yield {"name": name, "uri": uri, **({"annotations": notes} if notes else {})}
    tokenizer, revision = model.get("tokenizer_uri"), model.get("tokenizer_revision")
    if tokenizer:
        on_hub = _HUB_NAME.fullmatch(tokenizer) is not None and bool(revision)
        yield {
            "name": "tokenizer",
            "uri": f"pkg:huggingface/{tokenizer}@{revision}" if on_hub else tokenizer,
            **({"digest": {"gitCommit": revision}} if revision and _COMMIT.fullmatch(revision) else {}),
        }


def _source(record: RunRecord) -> Iterable[dict[str, Any]]:
    if record.source_commit is None:
        return
    yield {
        "name": "source",
        "digest": {"gitCommit": record.source_commit},
        "annotations": {"dirty": record.dirty},
    }


def _invocation(record: RunRecord) -> str:
    name = record.job_name or "unnamed"
    return f"{name} ({record.key.experiment}/{record.key.launch_digest}/{record.key.ordinal})"


def _who(authorized: object) -> str | None:
    """The name in `who: why`: what was said is for the record, who answers for it is provenance."""
    return authorized.partition(":")[0].strip() if isinstance(authorized, str) else None


def _without_nothing(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
