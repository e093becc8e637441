"""Model, tokenizer and data inputs of a launch document."""

import posixpath
import re
from collections.abc import Hashable, Iterator
from typing import Any

from tools.launcher.preflight.check import check
from tools.launcher.preflight.findings import Finding
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.wording import below, delete, listed, set_to, shown

_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
_CLOUD_SCHEMES = ("s3://", "gs://", "gcs://")

DATA_KINDS = ("tasks", "parquet")
"""Values of `inputs.data_kind` (contract, launch-document.md §4.8)."""

SOURCE_FIELDS = {
    "directory": ("uri", "identity", "local_path", "relative_path", "kind"),
    "tasktrove_parquet": (
        "uri",
        "identity",
        "local_path",
        "relative_path",
        "verifier_ref",
        "selection",
        "kind",
    ),
}
"""Kind of a data source -> its fields, all mandatory."""
_SNAPSHOT_FIELDS = ("count", "digest", "distinct_environment_count")
_OPTIONAL_FIELDS = {"directory": (), "tasktrove_parquet": ("snapshot",)}


def is_hub_name(uri: Any) -> bool:
    """Whether `uri` names a repository on the Hugging Face hub."""
    return isinstance(uri, str) and (uri.startswith("hf://") or _REPOSITORY.fullmatch(uri) is not None)


def is_commit(value: Any) -> bool:
    """Whether `value` is a full commit hash in lower case."""
    return isinstance(value, str) and _COMMIT.fullmatch(value) is not None


def relative_path_problem(path: Any) -> str | None:
    """Say why `path` is no path below a root, or return None."""
    if not isinstance(path, str):
        return f"is {shown(path)}, not text"
    if path.startswith(("/", "\\")) or "://" in path:
        return f"{shown(path)} is absolute"
    if ".." in path.replace("\\", "/").split("/"):
        return f"{shown(path)} leaves the artifact"
    return None


@check(
    "ART-07",
    "inputs do not share a staging folder",
    area="artifacts",
    rule="two inputs with one local_path, however it is spelt, have one uri",
    prevents="One input overwrites the other on every node, or training reads the validation data.",
    inputs=("spec",),
    source="catalogue ART-07 (#7); nobody checks it",
)
def art_07(subject: PreflightSubject) -> Iterator[Finding]:
    places: dict[str, tuple[str, Any]] = {}
    model = subject.get("inputs.model")
    inputs = [("inputs.model", model)] if isinstance(model, dict) else []
    for place, record in (*inputs, *subject.data_sources()):
        local_path, uri = record.get("local_path"), record.get("uri")
        if not isinstance(local_path, str):
            continue
        first, first_uri = places.setdefault(posixpath.normpath(local_path), (place, uri))
        if _directory(first_uri) != _directory(uri):
            yield Finding(
                path=f"{place}.local_path",
                message=f"{first} ({shown(first_uri)}) and {place} ({shown(uri)}) both stage to {shown(local_path)}",
                repair="rename one artifact: the last component of its name must differ",
            )


def _directory(uri: Any) -> Any:
    """The address without the slash that some write after a folder."""
    return uri.rstrip("/") if isinstance(uri, str) else uri


@check(
    "ART-08",
    "revisions are full commits",
    area="artifacts",
    rule="tokenizer revision, and the identity of a model that is read from the hub: 40 lower-case hex digits",
    prevents="The same version means other weights next month; a short hash can become ambiguous.",
    inputs=("spec",),
    source="catalogue ART-08 (#8), failure row 7 (marin#7797); the launcher checks draft models only",
)
def art_08(subject: PreflightSubject) -> Iterator[Finding]:
    draft = "skyrl.generator.speculative_decoding.model"
    revisions = [("inputs.model.tokenizer_revision", subject.get("inputs.model.tokenizer_uri"))]
    for path, uri in (
        ("inputs.model.identity", subject.get("inputs.model.uri")),
        (f"{draft}.source_identity", subject.get(f"{draft}.source_uri")),
    ):
        if is_hub_name(uri):
            revisions.append((path, uri))
    for path, uri in revisions:
        revision = subject.get(path)
        if not is_commit(revision):
            yield Finding(
                path=path,
                message=f"{path.rpartition('.')[2]} {shown(revision)} of {shown(uri)} is not a full commit hash "
                "(40 lower-case hex digits)",
                repair="look the hash up once and pin it",
            )


@check(
    "ART-12",
    "there is training data",
    area="artifacts",
    rule="train_data has a source, unless the entry point only generates",
    prevents="The launcher skips an empty list and the base default $HOME/data/gsm8k/train.parquet stays in force.",
    inputs=("spec", "runtime"),
    source="catalogue ART-12 (#12); nobody checks it",
)
def art_12(subject: PreflightSubject) -> Iterator[Finding]:
    data = subject.get("inputs.train_data")
    if data or subject.get("run.mode") == "checkpoint_export":
        return
    entrypoint = subject.manifest().entrypoints.get(subject.entrypoint)
    if entrypoint is None or entrypoint.training_type is not None:
        yield Finding(
            path="inputs.train_data",
            message="train_data is empty: the trainer would fall back to a file in the home directory",
            repair="add a data source to inputs.train_data",
        )


@check(
    "ART-14",
    "data sources are complete and stay inside their artifact",
    area="artifacts",
    rule=f"data_kind in {{{', '.join(DATA_KINDS)}}}; a source has a known kind and exactly its fields; "
    "relative_path is relative and without '..'",
    prevents="A bad kind is refused after the coordinator started, a bad path only while staging on the GPU nodes.",
    inputs=("spec",),
    source="catalogue ART-14 (#14); the launcher, late",
)
def art_14(subject: PreflightSubject) -> Iterator[Finding]:
    for path in ("inputs.data_kind", "skyrl.data.kind"):
        kind = subject.get(path)
        # A null recipe kind is no default: the launcher takes it over.
        null = kind is None and path == "skyrl.data.kind" and subject.source_form and subject.declares(path)
        if null or (kind is not None and kind not in DATA_KINDS):
            yield Finding(
                path=path,
                message=f"data kind {shown(kind)} is unknown. Known: {listed(DATA_KINDS)}",
                repair=set_to(path, DATA_KINDS[0], *DATA_KINDS[1:]),
            )
    for name in ("train_data", "validation_data"):
        records = subject.get(f"inputs.{name}")
        if records is not None and not isinstance(records, list):
            yield Finding(
                path=f"inputs.{name}",
                message=f"inputs.{name} is {shown(records)}, not a list of data sources",
                repair="write a list of data sources",
            )
        for index, record in enumerate(records if isinstance(records, list) else []):
            yield from _source_problems(f"inputs.{name}[{index}]", record)


def _source_problems(place: str, record: Any) -> Iterator[Finding]:
    if not isinstance(record, dict):
        yield Finding(
            path=place,
            message=f"{place} is {shown(record)}, not a data source",
            repair="write a mapping with uri, identity, local_path, relative_path and kind",
        )
        return
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in SOURCE_FIELDS:
        yield Finding(
            path=f"{place}.kind",
            message=f"kind {shown(kind)} of the data source is unknown. Known: {listed(SOURCE_FIELDS)}",
            repair=set_to(f"{place}.kind", "directory", "tasktrove_parquet"),
        )
        return
    fields = SOURCE_FIELDS[kind]
    for field in fields:
        if field not in record:
            yield Finding(
                path=f"{place}.{field}",
                message=f"a {kind} source needs {field}. Its fields: {listed(fields)}",
                repair=f"add {field} to {place}",
            )
        elif field in ("uri", "identity", "local_path") and not _is_text(record[field]):
            yield Finding(
                path=f"{place}.{field}",
                message=f"{field} of the data source is {shown(record[field])}, not text",
                repair=f"write the {field} of the artifact",
            )
    for field in sorted(set(record) - set(fields) - set(_OPTIONAL_FIELDS[kind]), key=str):
        yield Finding(
            path=below(place, field),
            message=f"a {kind} source has no field {shown(field)}. Its fields: {listed(fields)}",
            repair=delete(below(place, field)),
        )
    snapshot = record.get("snapshot")
    if snapshot is not None and (not isinstance(snapshot, dict) or set(snapshot) != set(_SNAPSHOT_FIELDS)):
        yield Finding(
            path=f"{place}.snapshot",
            message=f"the snapshot is {shown(snapshot)} that does not have exactly {listed(_SNAPSHOT_FIELDS)}",
            repair=delete(f"{place}.snapshot"),
        )
    problem = relative_path_problem(record["relative_path"]) if "relative_path" in record else None
    if problem is not None:
        yield Finding(
            path=f"{place}.relative_path",
            message=f"{place}.relative_path {problem}",
            repair="use a path below the artifact's root",
        )


@check(
    "ART-15",
    "the model is staged from a known artifact",
    area="artifacts",
    rule="uri, identity and local_path of the model are set; local_path is a local absolute path",
    prevents="The trainer downloads from the hub, or loads weights of unknown origin, in place of the staged copy.",
    inputs=("spec",),
    source="catalogue ART-15 (#15); the launcher, late",
)
def art_15(subject: PreflightSubject) -> Iterator[Finding]:
    uri, identity = subject.get("inputs.model.uri"), subject.get("inputs.model.identity")
    if not _is_text(uri):
        yield Finding(
            path="inputs.model.uri",
            message=f"inputs.model.uri is {shown(uri)}: there are no weights to start from",
            repair="write the path of the model's export",
        )
    elif ".." in uri.split("/"):
        yield Finding(
            path="inputs.model.uri",
            message=f"inputs.model.uri {shown(uri)} leaves the artifact",
            repair="use a path below the artifact's root",
        )
    elif uri.startswith("file://") and uri.removeprefix("file://").partition("/")[0] not in ("", "localhost"):
        yield Finding(
            path="inputs.model.uri",
            message=f"inputs.model.uri {shown(uri)} names a file of another host",
            repair="write the path on the nodes, such as file:///path",
        )
    elif not _is_text(identity):
        where = "on object storage " if uri.startswith(_CLOUD_SCHEMES) else ""
        yield Finding(
            path="inputs.model.identity",
            message=f"the model {where}{shown(uri)} has the identity {shown(identity)}",
            repair="write name@version:fingerprint of the artifact that made it",
        )
    local_path = subject.get("inputs.model.local_path")
    if not _is_text(local_path) or not local_path.startswith("/"):
        looks = "looks like a repository id" if is_hub_name(local_path) else "is not a local absolute path"
        yield Finding(
            path="inputs.model.local_path",
            message=f"inputs.model.local_path {shown(local_path)} {looks}",
            repair="use the staging path below /tmp/marinskyrl/models",
        )


def _content(record: dict[str, Any]) -> Hashable:
    """What a record selects, as a value that can be looked up."""
    inside = record.get("relative_path")
    path = posixpath.normpath(inside) if isinstance(inside, str) else inside
    return _frozen([_directory(record.get("uri")), path, record.get("selection")])


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((key, _frozen(value[key])) for key in sorted(value))
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


@check(
    "ART-20",
    "validation data is held out",
    area="artifacts",
    rule="no validation source has the uri, relative_path and selection of a training source",
    prevents="Validation measures memorisation.",
    inputs=("spec",),
    source="catalogue ART-20 (new); nobody checks it",
)
def art_20(subject: PreflightSubject) -> Iterator[Finding]:
    train: dict[Hashable, str] = {}
    for place, record in subject.data_sources("train_data"):
        train.setdefault(_content(record), place)
    for place, record in subject.data_sources("validation_data"):
        twin = train.get(_content(record))
        if twin is not None:
            yield Finding(
                path=place,
                message=f"{place} equals {twin} ({shown(record.get('uri'))}, {shown(record.get('relative_path'))})",
                repair="use a held-out split",
                severity="warning",
            )


@check(
    "ART-22",
    "no training source is listed twice",
    area="artifacts",
    rule="no two training sources have the same uri, relative_path and selection",
    prevents="Its prompts count twice, and an epoch is longer than the data.",
    inputs=("spec",),
    source="derived: the trainer concatenates its files; nobody checks it",
)
def art_22(subject: PreflightSubject) -> Iterator[Finding]:
    first: dict[Hashable, str] = {}
    for place, record in subject.data_sources("train_data"):
        if not _is_text(record.get("uri")):
            continue  # ART-14
        twin = first.setdefault(_content(record), place)
        if twin != place:
            yield Finding(
                path=place,
                message=f"{place} repeats {twin} ({shown(record.get('uri'))}, {shown(record.get('relative_path'))})",
                repair=delete(place),
                severity="warning",
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


CHECKS = (art_07, art_08, art_12, art_14, art_15, art_20, art_22)
