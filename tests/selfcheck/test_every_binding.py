"""`check` notices when a rule no longer binds in one of its documents."""

from dataclasses import replace

import pytest

from conformance.meaning.contract import contracts
from conformance.plan.rows import Plan, rows_of
from conformance.selfcheck.check_cases import problems_with_expectations
from tests.builders import bundled_plan


def bindings() -> list[tuple[str, str]]:
    """Return every rule that has a contract and is not implied, with each of its documents."""
    rules = bundled_plan().suite.spec.rules.values()
    return [
        (rule.id, document)
        for rule in rules
        if rule.level in ("must", "decided") and rule.has_contract and not rule.implied
        for document in sorted(rule.documents)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "document"), bindings(), ids=lambda name: name)
def test_a_rule_that_no_longer_binds_contradicts_a_case(rule: str, document: str) -> None:
    suite = bundled_plan().suite
    unbound = replace(suite.spec.rules[rule], documents=suite.spec.rules[rule].documents - {document})
    spec = replace(suite.spec, rules={**suite.spec.rules, rule: unbound})
    citing = {case.id: case for case in suite.cases.values() if case.rule == rule}
    rows = tuple(rows_of(citing.values(), spec, contracts(spec)))
    found = [str(problem) for problem in problems_with_expectations(Plan(replace(suite, spec=spec), rows))]
    assert any(f"in {document} " in problem for problem in found), found[:3]
