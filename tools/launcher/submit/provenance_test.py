"""The provenance of a launch: the two formats' own rules as strict models, and what is in it and what is not."""

import json
import re
import sys
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tools.launcher.documents.canonical import canonical_json, digest_of, sha256_hex
from tools.launcher.store.bundles import LaunchBundle, pack
from tools.launcher.store.file_store import FileStore
from tools.launcher.store.records import RunKey, append_event, load_record
from tools.launcher.submit.provenance import LEVEL, provenance_key, provenance_statement, write_provenance

COMMIT, SOURCE = "c" * 40, "d" * 40
LAUNCH = {
    "inputs": {
        "model": {
            "uri": "s3://lab/models/qwen/2026.11.30/hf",
            "identity": "models/qwen@2026.11.30:0badcafe",
            "tokenizer_uri": "Qwen/Qwen3-0.6B",
            "tokenizer_revision": "e" * 40,
        },
        "train_data": [{"uri": "s3://lab/gsm8k", "identity": "data/gsm8k@1:11111111", "relative_path": "a"}],
        "validation_data": [
            {"uri": "s3://lab/gsm8k", "identity": "data/gsm8k@1:11111111", "relative_path": "b"}
        ],
    },
    "runtime": {"launcher_commit": COMMIT, "task_env": {"LOG": "debug"}},
}
GRAPH = {
    "experiment": "//experiments/cats:cats",
    "steps": [{"identity": "models/qwen@2026.11.30:0badcafe", "fingerprint": "0badcafe" + "0" * 56}],
}
PLAN = {
    "version": "2026.11.30",
    "options": {"scale": "smoke"},
    "runtime": {"manifest": "marinskyrl-cccccccc", "commit": COMMIT, "profile": "fsdp"},
}
BUNDLE = LaunchBundle(
    launch_yaml=json.dumps(LAUNCH).encode(),
    graph_json=json.dumps(GRAPH).encode(),
    plan_json=json.dumps(PLAN).encode(),
    digest_text=f"recipe sha256:{'b' * 64}\nlaunch sha256:{digest_of(LAUNCH)}\n",
)
KEY = RunKey(experiment="cats", launch_digest=digest_of(LAUNCH), ordinal=2)
INTENT = {
    "job_name": "cats-aaaaaaaa-2",
    "recipe": "b" * 64,
    "bundle": sha256_hex(pack(BUNDLE)),
    "code": "f" * 64,
    "stage": "rl",
    "cluster": "cw-us-east-02a",
    "runtime": "marinskyrl",
    "runtime_commit": COMMIT,
    "forwarded_names": ["HF_TOKEN", "WANDB_API_KEY"],
    "gates": {"budget": "overridden", "clean-tree": "passed"},
    "overrides": {"budget": "ann: agreed with the lab"},
    "authorized": "bob: node fault",
    "source_commit": SOURCE,
    "dirty": True,
    "source_note": "",
}


def a_uri(text: str) -> str:
    assert urlsplit(text).scheme and not any(character.isspace() for character in text), text
    return text


Uri = Annotated[str, AfterValidator(a_uri)]
DIGITS = {"sha256": 64, "gitCommit": 40}


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class ResourceDescriptor(_Strict):
    """in-toto attestation spec v1, resource_descriptor.md."""

    name: str | None = None
    uri: Uri | None = None
    digest: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _names_something(self):
        assert self.uri or self.digest, "one of uri, digest, content is required"
        for algorithm, value in (self.digest or {}).items():
            assert re.fullmatch(rf"[0-9a-f]{{{DIGITS[algorithm]}}}", value), (algorithm, value)
        return self


class Subject(ResourceDescriptor):
    """statement.md: the digest is required, the name tells subjects apart."""

    name: str
    digest: dict[str, str]


class BuildDefinition(_Strict):
    buildType: Uri
    externalParameters: dict[str, Any] = Field(min_length=1)
    internalParameters: dict[str, Any]
    resolvedDependencies: list[ResourceDescriptor]

    @model_validator(mode="after")
    def _names_differ(self):
        assert not self.externalParameters.keys() & self.internalParameters.keys()
        return self


class Builder(_Strict):
    id: Uri
    version: dict[str, str] = {}


class Metadata(BaseModel):
    """Extensions are named `<vendor>_<field>`; no field of the format has an underscore."""

    model_config = ConfigDict(strict=True, extra="allow")

    invocationId: str
    startedOn: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")

    @model_validator(mode="after")
    def _extensions_are_ours(self):
        assert all(name.startswith("slipway_") for name in self.model_extra)
        return self


class RunDetails(_Strict):
    builder: Builder
    metadata: Metadata


class Provenance(_Strict):
    buildDefinition: BuildDefinition
    runDetails: RunDetails


class Statement(_Strict):
    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: list[Subject] = Field(min_length=1)
    predicateType: Literal["https://slsa.dev/provenance/v1"]
    predicate: Provenance


@pytest.fixture
def store(tmp_path):
    return FileStore(tmp_path)


def recorded(store, **changes):
    append_event(store, KEY, "intent", "ann@desk", {**INTENT, **changes})
    append_event(store, KEY, "submitted", "ann@desk", {"job_id": "/slipway/cats-aaaaaaaa-2"})
    return load_record(store, KEY)


def statement_of(record):
    statement = provenance_statement(record, BUNDLE)
    return Statement.model_validate(json.loads(canonical_json(statement)))


def test_the_statement_names_what_was_submitted_and_what_it_is_made_of(store):
    record = recorded(store)
    statement = statement_of(record)
    assert {subject.name: subject.digest["sha256"] for subject in statement.subject} == {
        "cats/launch.yaml": sha256_hex(BUNDLE.launch_yaml),
        "cats/launch": KEY.launch_digest,
        "cats/recipe": "b" * 64,
        "cats/bundle": INTENT["bundle"],
        "cats/code": "f" * 64,
    }
    build = statement.predicate.buildDefinition
    assert build.externalParameters == {
        "experiment": "//experiments/cats:cats",
        "version": "2026.11.30",
        "options": {"scale": "smoke"},
        "stage": "rl",
        "cluster": "cw-us-east-02a",
        "ordinal": 2,
    }
    assert build.internalParameters == {
        "runtime": "marinskyrl",
        "gates": INTENT["gates"],
        "overrides": ["budget"],
        "authorizedBy": "bob",
        "forwardedNames": ["HF_TOKEN", "WANDB_API_KEY"],
    }
    found = {(one.name, one.uri): one for one in build.resolvedDependencies}
    assert found["runtime", f"git+https://github.com/marin-community/MarinSkyRL@{COMMIT}"].digest == {
        "gitCommit": COMMIT
    }
    model = found["model", "s3://lab/models/qwen/2026.11.30/hf"]
    assert model.digest is None and model.annotations["fingerprint"].startswith("0badcafe0")
    assert found["data", "s3://lab/gsm8k"].annotations == {"identity": "data/gsm8k@1:11111111"}
    assert found["tokenizer", f"pkg:huggingface/Qwen/Qwen3-0.6B@{'e' * 40}"].digest == {"gitCommit": "e" * 40}
    source = found["source", None]
    assert (source.digest, source.annotations) == ({"gitCommit": SOURCE}, {"dirty": True})
    assert len(found) == len(build.resolvedDependencies) == 5
    run = statement.predicate.runDetails
    assert run.metadata.invocationId == f"cats-aaaaaaaa-2 (cats/{KEY.launch_digest}/2)"
    assert run.metadata.startedOn == record.when
    assert run.metadata.model_extra == {"slipway_level": LEVEL, "slipway_launchedBy": "ann@desk"}
    assert LEVEL == "unsigned: SLSA Build L1 at most"
    assert run.builder.version == {"slipway": f"sha256:{'f' * 64}"}


def test_what_is_not_known_is_left_out_and_said(store):
    record = recorded(
        store,
        source_commit=None,
        dirty=None,
        source_note="source unknown: there is no `git` command",
        authorized=None,
    )
    statement = statement_of(record)
    assert "source" not in {one.name for one in statement.predicate.buildDefinition.resolvedDependencies}
    assert statement.predicate.runDetails.metadata.model_extra["slipway_sourceNote"].startswith(
        "source unknown"
    )
    assert "authorizedBy" not in statement.predicate.buildDefinition.internalParameters


def test_code_and_gates_are_those_of_the_call_that_submitted(store):
    append_event(store, KEY, "intent", "ann@desk", INTENT)
    facts = {"job_id": "/slipway/cats", "code": "1" * 64, "gates": {"budget": "passed"}, "overrides": {}}
    append_event(store, KEY, "submitted", "bob@lab", facts)
    statement = statement_of(load_record(store, KEY))
    assert statement.subject[-1].digest == {"sha256": "1" * 64}
    assert statement.predicate.buildDefinition.internalParameters["gates"] == {"budget": "passed"}
    assert statement.predicate.buildDefinition.internalParameters["overrides"] == []


def test_of_the_call_that_submitted_also_where_another_found_the_job_first(store):
    append_event(store, KEY, "intent", "ann@desk", INTENT)
    append_event(store, KEY, "submitted", "cy@lap", {"job_id": "/slipway/cats", "adopted": True})
    facts = {"job_id": "/slipway/cats", "adopted": False, "code": "1" * 64, "gates": {}, "overrides": {}}
    append_event(store, KEY, "submitted", "bob@lab", facts)
    statement = statement_of(load_record(store, KEY))
    assert statement.subject[-1].digest == {"sha256": "1" * 64}
    assert statement.predicate.buildDefinition.internalParameters["gates"] == {}


def test_a_record_and_a_bundle_that_say_little_still_give_a_statement(store):
    append_event(store, KEY, "submitted", "ann@desk", {"job_id": "/slipway/cats"})
    bare = LaunchBundle(launch_yaml=b"{}", graph_json=b"{}", plan_json=b"{}", digest_text="")
    statement = provenance_statement(load_record(store, KEY), bare)
    Statement.model_validate(json.loads(canonical_json(statement)))


def test_it_is_written_once_and_the_first_stays(store):
    record = recorded(store)
    write_provenance(store, record, BUNDLE)
    key = provenance_key(KEY)
    assert key == f"runs/cats/{KEY.launch_digest}/2/provenance.json"
    first = store.get(key)
    assert first == canonical_json(provenance_statement(record, BUNDLE)) + b"\n"
    append_event(store, KEY, "succeeded", "coordinator", {})
    write_provenance(store, load_record(store, KEY), BUNDLE)
    write_provenance(store, record, BUNDLE.model_copy(update={"plan_json": b"{}"}))
    assert store.get(key) == first
    assert load_record(store, KEY).events[-1].kind == "succeeded"


def test_no_words_of_an_answer_and_nothing_of_the_environment_is_in_it(store):
    text = canonical_json(provenance_statement(recorded(store), BUNDLE)).decode()
    assert not [word for word in ("node fault", "agreed with the lab", "LOG", "debug") if word in text]


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
