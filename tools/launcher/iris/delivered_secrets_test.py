"""Tests of reading what Iris delivered; that Iris delivers it so is tested with the cluster."""

import sys
from pathlib import Path

import pytest

from tools.launcher.iris.delivered_secrets import DIRECTORY_VARIABLE, CredentialMissing, delivered


def test_values_come_as_they_were_written_and_print_as_stars(tmp_path: Path) -> None:
    (tmp_path / "HF_TOKEN").write_text(" one\ntwo ü\n")
    (tmp_path / "OTHER").write_text("unasked")
    found = delivered(["HF_TOKEN"], {DIRECTORY_VARIABLE: str(tmp_path)})
    assert {name: value.get_secret_value() for name, value in found.items()} == {"HF_TOKEN": " one\ntwo ü\n"}
    assert "one" not in repr(found)


def test_nothing_is_asked_for() -> None:
    assert delivered([], {}) == {}


def test_all_that_is_missing_is_named_and_no_value(tmp_path: Path) -> None:
    (tmp_path / "EMPTY").write_text("")
    (tmp_path / "BLANK").write_text(" \n")
    (tmp_path / "BYTES").write_bytes(b"secret\xff")
    (tmp_path / "THERE").write_text("secret")
    with pytest.raises(CredentialMissing) as caught:
        delivered(["ABSENT", "EMPTY", "BLANK", "BYTES", "THERE"], {DIRECTORY_VARIABLE: str(tmp_path)})
    assert str(caught.value) == (
        "ABSENT, EMPTY, BLANK, BYTES: declared as credential of this run, and not among what Iris delivered to this "
        "task, or empty there. The local Iris has forgotten credentials after a restart of the machine or "
        "`launcher local stop`. Set the variable where you launch, and launch as a new ordinal"
    )
    assert caught.value.__cause__ is None


def test_nothing_was_delivered() -> None:
    with pytest.raises(CredentialMissing, match="^HF_TOKEN: declared as credential"):
        delivered(["HF_TOKEN"], {"HF_TOKEN": "in the environment, where no credential belongs"})


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
