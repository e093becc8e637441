import sys
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.launcher.documents.longest_run import LongestRun, longest_run, most_attempts

JOB: Final = "job_timeout_seconds"
COORDINATOR: Final = "coordinator_timeout_hours"


@pytest.mark.parametrize(
    ("timeout", "retries", "nodes", "hours", "expected"),
    [
        pytest.param(1800, 0, 2, 12, LongestRun(1800, JOB, 1), id="a single attempt"),
        pytest.param(1800, 1, 1, 12, LongestRun(4 * 1800, JOB, 4), id="one failure and two preemptions"),
        pytest.param(1800, 1, 2, 12, LongestRun(6 * 1800, JOB, 6), id="two preemptions of each task"),
        pytest.param(1800, 1, 2, 3, LongestRun(3 * 3600, JOB, 6), id="just before the coordinator"),
        pytest.param(1801, 1, 2, 3, LongestRun(3 * 3600, COORDINATOR, 1), id="the coordinator ends it"),
        pytest.param(0, 1, 2, 12, LongestRun(12 * 3600, COORDINATOR, 1), id="no timeout of its own"),
    ],
)
def test_the_longest_run(timeout, retries, nodes, hours, expected):
    found = longest_run(
        job_timeout_seconds=timeout, max_retries=retries, nodes=nodes, coordinator_timeout_hours=hours
    )
    assert found == expected


@given(
    timeout=st.integers(0, 10**6),
    retries=st.integers(0, 9),
    nodes=st.integers(1, 99),
    hours=st.integers(1, 99),
)
def test_it_is_the_sooner_of_both_ends(timeout, retries, nodes, hours):
    found = longest_run(
        job_timeout_seconds=timeout, max_retries=retries, nodes=nodes, coordinator_timeout_hours=hours
    )
    ends = [hours * 3600, *([timeout * most_attempts(retries, nodes)] if timeout else [])]
    assert found.seconds == min(ends)
    assert found.seconds % found.attempts == 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
