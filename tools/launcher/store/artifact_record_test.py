import json
import sys

import pytest

from tools.launcher.store.artifact_record import (
    RECORD_FILE,
    ArtifactRecord,
    UnreadableArtifactRecord,
    read_artifact_record,
    write_artifact_record,
)

RECORD = ArtifactRecord(
    name="team/data", version="2026.01.15", kind="dataset", fingerprint="0123abcd", rehearsal=True
)


def test_a_record_reads_back_and_absence_is_none(tmp_path):
    assert read_artifact_record(tmp_path) is None
    write_artifact_record(tmp_path, RECORD)
    assert read_artifact_record(tmp_path) == RECORD
    assert RECORD.identity == "team/data@2026.01.15:0123abcd"


def test_fields_of_a_newer_writer_are_passed_over(tmp_path):
    write_artifact_record(tmp_path, RECORD)
    path = tmp_path / RECORD_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"color": "red", "schema": 2}))
    assert read_artifact_record(tmp_path) == RECORD


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "the record: Invalid JSON"),
        ('{"name": "x"}', "version: Field required"),
        ('{"name": 1}', "name: Input should be a valid string"),
    ],
)
def test_a_broken_record_is_named(tmp_path, content, sentence):
    (tmp_path / RECORD_FILE).write_text(content)
    with pytest.raises(UnreadableArtifactRecord) as caught:
        read_artifact_record(tmp_path)
    assert sentence in str(caught.value)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
