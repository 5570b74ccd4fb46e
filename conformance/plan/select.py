"""`-k EXPR`: select rows by words of their ids, facets or levels, joined by and, or, not and brackets; or --quick."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import replace
from functools import partial

from ..model import Cases
from ..system.groups import group_pairs
from ..system.text import describe_unknown, find_near
from .quick import QUICK, quick_rows
from .rows import Plan, Row

_TOKEN = re.compile(r"\s*(?:([()])|('[^']*'|\"[^\"]*\"|[^\s()]+))")
MAX_NESTED = 100
"""Brackets and `not` in an expression. Python reads some hundreds, one inside another."""
Chooser = Callable[[Row], bool]
_Parsed = tuple[Chooser, list[str]]
"""A test, and the tokens behind its expression."""


class BadExpression(Exception):
    """An expression cannot be read; the message says why."""


def select_rows(plan: Plan, select: str | None) -> Plan:
    """Return the plan with only the rows that -k or --quick chooses; BadExpression if -k cannot be read.

    No such run shows conformity, so it need not say of each other row that it was not run.
    """
    if select == plan.select:
        return plan
    quick = frozenset(quick_rows().rows) if select == QUICK else ()
    chosen = (lambda row: row.id in quick) if quick else parse_selection(select or "", plan)
    return replace(plan, rows=tuple(filter(chosen, plan.rows)), select=select)


def parse_selection(expression: str, plan: Plan) -> Chooser:
    """Return a test for rows. The id of a row or case selects only that; a word, rows with it in id, file or rule.

    `facet:in-place` selects the rows of a facet, and `level:must` those of rules of a level.
    """
    whole = expression.strip().rpartition("::")[2]
    if whole in ids(plan.rows):
        return lambda row: whole in (row.id, row.case.id)
    tokens = [bracket or word for bracket, word in _TOKEN.findall(expression)]
    if not tokens:
        raise BadExpression("the expression is empty; write words of case ids, such as 'infer and not empty'")
    if sum(token in ("not", "(") for token in tokens) > MAX_NESTED:
        raise BadExpression(f"it has more than {MAX_NESTED} not and brackets; name fewer cases")
    test, rest = _read_any(tokens, plan)
    if rest:
        raise BadExpression(f"{rest[0]!r} is one too many in {expression!r}; join words with and, or, not")
    return test


def ids(rows: tuple[Row, ...]) -> frozenset[str]:
    """Return every row id and case id."""
    return frozenset(name for row in rows for name in (row.id, row.case.id))


def find_case(expression: str, cases: Container[str]) -> str | None:
    """Return the case if an expression is its id, or has the form of the id of one of its rows; else None."""
    name = expression.strip().rpartition("::")[2].partition("[")[0]
    return name if name in cases else None


def nearest(expression: str, cases: Cases) -> list[str]:
    """Return ids of cases, rules or words of ids that are close to an expression, unless it is the name of one."""
    meant = expression.strip().strip("'\"").rpartition("::")[2].partition("[")[0]
    names = dict.fromkeys(name for id_, rule in cases.rules() for name in (id_, rule))
    words = dict.fromkeys(word for name in names for word in name.split("-"))
    if meant in names:  # its rows are outside the target
        return []
    return find_near(meant, names, 3, 0.7) or find_near(meant, words)


def _read_any(tokens: list[str], plan: Plan) -> _Parsed:
    return _read_joined(tokens, plan, "or", any, partial(_read_joined, word="and", join=all, read=_read_one))


def _read_joined(
    tokens: list[str], plan: Plan, word: str, join: Callable[[Iterable[bool]], bool], read: Callable[..., _Parsed]
) -> _Parsed:
    """Read the parts that a word joins."""
    test, rest = read(tokens, plan)
    tests = [test]
    while rest[:1] == [word]:
        test, rest = read(rest[1:], plan)
        tests.append(test)
    return (lambda row: join(each(row) for each in tests)), rest


def _read_one(tokens: list[str], plan: Plan) -> _Parsed:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise BadExpression(f"a word is missing before {tokens[0]!r}" if tokens else "the expression ends too early")
    if tokens[0] == "not":
        test, rest = _read_one(tokens[1:], plan)
        return (lambda row: not test(row)), rest
    if tokens[0] == "(":
        test, rest = _read_any(tokens[1:], plan)
        if rest[:1] != [")"]:
            raise BadExpression("a bracket is not closed")
        return test, rest[1:]
    word = tokens[0].strip("'\"").lower()
    kind, _, name = word.partition(":")
    if kind == "facet":
        if name not in (facets := {facet for row in plan.rows for facet in row.facets}):
            raise BadExpression(describe_unknown("facet", name, sorted(facets), "adapters/README.md"))
        return (lambda row: name in row.facets), tokens[1:]
    if kind == "level":
        rules = group_pairs((rule.level, rule.id) for rule in plan.suite.spec.rules.values())
        if name not in rules:
            raise BadExpression(describe_unknown("level", name, rules))
        return (lambda row: row.case.rule in rules[name]), tokens[1:]
    return (lambda row: word in row.pytest_id.lower() or word in row.case.rule), tokens[1:]
