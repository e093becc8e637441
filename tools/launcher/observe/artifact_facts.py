"""The facts of steps that train nothing: their artifacts exist, are the plan's, and are whole.

Every runtime marks a finished artifact by its record, `.artifact.json`; what an import or an evaluation is beyond
that, the record says by naming its files.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from tools.launcher.documents.canonical import sha256_hex
from tools.launcher.observe.evidence import Unreadable
from tools.launcher.observe.facts import Fact
from tools.launcher.observe.marinskyrl_facts import Findings
from tools.launcher.observe.marinskyrl_files import Reader, Unknown
from tools.launcher.observe.run_files import PlannedStep, RunFiles
from tools.launcher.store.artifact_record import (
    RECORD_FILE,
    ArtifactRecord,
    UnreadableArtifactRecord,
    parse_artifact_record,
)

IMPORTS_EXIST: Final = "imports_exist"
EVALUATIONS_EXIST: Final = "evaluations_exist"

_RESULT: Final = "result.json"
_SHOWN_DIGITS: Final = 8


def imports_exist(files: RunFiles, reader: Reader, *, recorded_state: str) -> tuple[Fact, bool]:
    """Every model and dataset of the run is there, as the plan has it and whole.

    Args:
        files: the plan.
        reader: of the artifacts.
        recorded_state: of the run, whose coordinator made them or looked for them.

    Returns:
        the fact, and whether a stand-in made any of them.
    """
    found = Findings()
    if recorded_state != "succeeded":
        found.problems.append(f"the run's record says {recorded_state}")
    records = _records(files.imports, reader, found)
    found.problems += [
        f"{address} {RECORD_FILE} names no file, so nothing says what of it has to be there"
        for address, record in records.items()
        if not record.files
    ]
    rehearsal = any(record.rehearsal for record in records.values())
    return _fact(IMPORTS_EXIST, files.imports, records, found), rehearsal


def evaluations_exist(files: RunFiles, reader: Reader) -> Fact:
    """Every evaluation of the run is there, as the plan has it and whole; a stand-in's is of this run's export."""
    found = Findings()
    records = _records(files.evaluations, reader, found)
    for step in files.evaluations:
        if step.address in records and records[step.address].rehearsal:
            _result_problems(step, files, reader, found)
    return _fact(EVALUATIONS_EXIST, files.evaluations, records, found)


def _records(steps: Sequence[PlannedStep], reader: Reader, found: Findings) -> dict[str, ArtifactRecord]:
    """Return the artifact record of each step that has one, and note what is wrong with the artifacts."""
    records = {}
    for step in steps:
        try:
            record = records[step.address] = _record_at(_record_uri(step), reader)
        except (Unreadable, Unknown) as error:
            found.add(error, step.address)
            continue
        _identity_problems(step, record, found)
        _file_problems(step, record, reader, found)
    return records


def _fact(
    name: str, steps: Sequence[PlannedStep], records: Mapping[str, ArtifactRecord], found: Findings
) -> Fact:
    addresses = ", ".join(step.address for step in steps)
    number = sum(len(record.files) for record in records.values())
    files = f", with {number} {'file' if number == 1 else 'files'}" if number else ""
    return found.fact(
        name,
        f"{addresses}, whole and the plan's",
        f"{addresses}{files}",
        [_record_uri(step) for step in steps],
    )


def _record_uri(step: PlannedStep) -> str:
    return f"{step.output_path}/{RECORD_FILE}"


def _record_at(uri: str, reader: Reader) -> ArtifactRecord:
    try:
        return parse_artifact_record(reader.data(uri))
    except UnreadableArtifactRecord as error:
        raise Unreadable(f"{RECORD_FILE} cannot be read: {error}") from None


def _identity_problems(step: PlannedStep, record: ArtifactRecord, found: Findings) -> None:
    # An adopted step carries only the eight digits on record.
    digits = min(len(step.fingerprint), len(record.fingerprint))
    same = step.fingerprint[:digits] == record.fingerprint[:digits]
    if (f"{record.name}@{record.version}", record.kind) != (step.address, step.kind) or not same:
        found.problems.append(
            f"{step.output_path} holds {record.name}@{record.version} ({record.kind}, fingerprint "
            f"{record.fingerprint[:_SHOWN_DIGITS]}), not {step.address} ({step.kind}, fingerprint "
            f"{step.fingerprint[:_SHOWN_DIGITS]})"
        )


def _file_problems(step: PlannedStep, record: ArtifactRecord, reader: Reader, found: Findings) -> None:
    """Look at the files that the record names: of a stand-in's, which are small, at what is in them."""
    for path, digest in sorted(record.files.items()):
        uri = f"{step.output_path}/{path}"
        try:
            if not record.rehearsal:
                if not reader.exists(uri):
                    raise Unreadable(f"{path} is missing")
            elif sha256_hex(reader.data(uri)) != digest:
                found.problems.append(f"{step.address} {path} has another digest than {RECORD_FILE} says")
        except (Unreadable, Unknown) as error:
            found.add(error, step.address)


def _result_problems(step: PlannedStep, files: RunFiles, reader: Reader, found: Findings) -> None:
    uri = f"{step.output_path}/{_RESULT}"
    try:
        result = reader.mapping(uri)
    except Unreadable as error:
        found.add(error, step.address)
        return
    except Unknown as error:
        found.add(error)
        return
    reward, export = result.get("reward_mean"), result.get("export")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        found.problems.append(f"{step.address} {_RESULT} has reward_mean {reward!r}, which is no number")
    if not str(export).startswith(f"{files.export_root}/"):
        found.problems.append(
            f"{step.address} {_RESULT} is of the export {export!r}, which is not below {files.export_root}"
        )
