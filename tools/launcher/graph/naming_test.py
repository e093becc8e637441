"""Versions, names and paths."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.graph.names import artifact_name_problem, sanitised_job_name
from tools.launcher.graph.paths import (
    data_staging_path,
    model_staging_path,
    output_path,
    rounded_ttl_days,
    temporary_root,
)
from tools.launcher.graph.versions import following_version, is_mutable, near_version, version_problem


@pytest.mark.parametrize("version", ["2026.01.15", "2026.01.15.2", "2028.02.29", "dev", "smoke-dev"])
def test_good_versions(version):
    assert version_problem(version) is None


@pytest.mark.parametrize(
    ("version", "sentence"),
    [
        ("2026.13.01", "month 13 does not exist"),
        ("2026.02.29", "2026-02 has no day 29"),
        ("2026.04.31", "2026-04 has no day 31"),
        ("0000.01.01", "year 0 does not exist"),
        ("2026.01.15.0", "the counter starts at 1"),
        ("2026.1.15", "is neither YYYY.MM.DD, YYYY.MM.DD.N, dev nor <label>-dev"),
        ("v1", "is neither"),
        ("develop", "is neither"),
        ("2026.01.15\n", "is neither"),
        ("", "is neither"),
    ],
)
def test_bad_versions(version, sentence):
    assert sentence in (version_problem(version) or "")


def test_only_calendar_versions_are_fixed():
    assert not is_mutable("2026.01.15") and not is_mutable("2026.01.15.3")
    assert is_mutable("dev") and is_mutable("smoke-dev")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2026-12-01", "2026.12.01"),
        ("2026.12.1", "2026.12.01"),
        ("v2026/1/5", "2026.01.05"),
        ("20261201", "2026.12.01"),
        ("2026_12_01-2", "2026.12.01.2"),
        ("2026.13.01", None),
        ("2026-02-30", None),
        ("2026121", None),
        ("v1", None),
        ("1.0", None),
        ("", None),
    ],
)
def test_a_date_that_is_written_otherwise_is_seen(text, version):
    assert near_version(text) == version


def test_the_next_version_of_a_day():
    assert following_version("2026.11.30") == "2026.11.30.1"
    assert following_version("2026.11.30.9") == "2026.11.30.10"


@pytest.mark.parametrize("name", ["a", "team/snow-moe-rl", "users/lab/x.y_z"])
def test_good_names(name):
    assert artifact_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "is empty"),
        ("s3://b/x", "contains a URL scheme"),
        ("/x", "has a slash at an end"),
        ("x/", "has a slash at an end"),
        ("a/../b", "contains '..'"),
        ("a/./b", "contains '.'"),
        ("a//b", "contains '//'"),
        ("a b", "contains white space"),
    ],
)
def test_bad_names(name, sentence):
    assert sentence in (artifact_name_problem(name) or "")


def test_sanitiser_follows_the_contract():
    assert (
        sanitised_job_name("team/snow-moe-rl-2026.01.15-1a2b3c4d5e6f")
        == "team-snow-moe-rl-2026.01.15-1a2b3c4d5e6f"
    )
    assert sanitised_job_name("--A  B..") == "a-b"
    assert sanitised_job_name("///") == "remote_job"


@given(st.text())
def test_sanitised_names_are_what_iris_takes(text):
    name = sanitised_job_name(text)
    assert re.fullmatch(r"[a-z0-9_.-]+", name) and sanitised_job_name(name) == name


def test_paths_follow_the_contract():
    path = output_path("s3://marin-us-east-02a/marin", "team/snow-moe-rl", "2026.01.15")
    assert path == "s3://marin-us-east-02a/marin/team/snow-moe-rl/2026.01.15"
    assert (
        temporary_root("s3://marin-us-east-08a", 10, path)
        == "s3://marin-us-east-08a/tmp/ttl=14d/skyrl/marin/team/snow-moe-rl/2026.01.15"
    )
    assert model_staging_path("tests/qwen06-sft") == "/tmp/marinskyrl/models/qwen06-sft"
    assert data_staging_path("team-a/gsm8k") == data_staging_path("team-b/gsm8k")


@pytest.mark.parametrize(("days", "rounded"), [(1, 1), (7, 7), (8, 14), (15, 30), (400, 30)])
def test_ttl_is_rounded_up(days, rounded):
    assert rounded_ttl_days(days) == rounded


def test_ttl_of_nothing_is_refused():
    with pytest.raises(ValueError, match="temporary_storage_ttl_days must be positive, got 0"):
        rounded_ttl_days(0)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
