"""Properties of the whole registry on random plans and random documents."""

import contextlib
import random
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.catalogue.catalogue_case import case_files, load_case
from tests.catalogue.mutations import MUTATIONS
from tests.catalogue.resolved import resolved
from tests.catalogue.role_plans import RolePlan, role_plans
from tools.launcher.documents.strict_yaml import DocumentError, load_yaml_mapping
from tools.launcher.preflight.engine import run_preflight
from tools.launcher.preflight.findings import PreflightReport
from tools.launcher.preflight.registry import CHECKS
from tools.launcher.preflight.subject import PreflightSubject
from tools.launcher.preflight.testing.subjects import pinned_runtime

AREAS = {check.id: check.area for check in CHECKS}
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def listed(report: PreflightReport) -> list[tuple[str, str]]:
    return [(item.id, item.message) for item in report.errors]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(plan=role_plans())
def test_a_legal_role_plan_is_accepted(plan: RolePlan):
    subject = plan.subject()
    assert listed(run_preflight(subject, CHECKS)) == []
    # Neither is a plan refused for facts that are not there.
    assert listed(run_preflight(replace(subject, model=None, cluster=None), CHECKS)) == []


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(plan=role_plans())
def test_a_legal_role_plan_is_accepted_in_resolved_form(plan: RolePlan):
    subject = plan.subject()
    launched = resolved(subject.document, pinned_runtime())
    assert listed(run_preflight(subject.with_document(launched), CHECKS)) == []


def accepted_sources() -> list[Any]:
    """The documents in source form that the catalogue accepts."""
    cases = ((path.stem, load_case(path)) for path in case_files())
    documents = (
        (name, load_yaml_mapping(case.data(), source=name)) for name, case in cases if case.expect == "accept"
    )
    return [
        pytest.param(document, id=name)
        for name, document in documents
        if "context_budget" in document["skyrl"]
    ]


@pytest.mark.parametrize("document", accepted_sources())
def test_what_is_accepted_in_source_form_is_accepted_in_resolved_form(document):
    subject = PreflightSubject(document=resolved(document, pinned_runtime()), runtime=pinned_runtime())
    assert listed(run_preflight(subject, CHECKS)) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "_"))
def test_one_illegal_change_is_refused_by_its_area(mutation):
    @settings(max_examples=10, deadline=None, suppress_health_check=SLOW)
    @given(plan=role_plans())
    def judge(plan: RolePlan):
        assume(mutation.applies(plan))
        report = run_preflight(plan.subject(mutation.changes(plan)), CHECKS)
        assert mutation.area in {AREAS[item.id] for item in report.errors}, listed(report)

    judge()


@settings(max_examples=40, deadline=None, suppress_health_check=SLOW)
@given(plan=role_plans(), mutation=st.sampled_from(MUTATIONS), seed=st.integers(0, 999))
def test_findings_do_not_depend_on_the_order_of_checks_or_on_the_run(plan, mutation, seed):
    subject = plan.subject(mutation.changes(plan))
    report = run_preflight(subject, CHECKS)
    shuffled = list(CHECKS)
    random.Random(seed).shuffle(shuffled)
    assert run_preflight(subject, shuffled) == report == run_preflight(subject, CHECKS)


def readable_documents() -> list[bytes]:
    """The documents of the catalogue that are YAML mappings."""
    found = []
    for path in case_files():
        content = load_case(path).data()
        with contextlib.suppress(DocumentError):
            load_yaml_mapping(content, source=path.name)
            found.append(content)
    return found


DOCUMENTS = readable_documents()
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**18, 10**30),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(("true", "auto", "8", "1e-6", "s3://x/y", "main", "${trainer.strategy}")),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc._", max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    return [(node, key) for key in keys] + [place for key in keys for place in places(node[key])]


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_a_catalogue_document_with_any_other_values_is_judged(data):
    document = load_yaml_mapping(data.draw(st.sampled_from(DOCUMENTS)), source="case")
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(document)))
        container[key] = data.draw(VALUES)
    subject = PreflightSubject(document=document, runtime=pinned_runtime())
    report = run_preflight(subject, CHECKS)
    assert run_preflight(subject, CHECKS[::-1]) == report
    for item in report.violations:
        assert item.message and item.repair


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
