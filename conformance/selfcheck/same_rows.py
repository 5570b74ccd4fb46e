"""Earlier suites with no other rows than a later one: it judges their evidence, and no backend has to run again.

So a sentence, a reading or a finding can be corrected, and cases and combinations can be added.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields
from itertools import chain
from pathlib import Path

from ..draw.combinations import count_combinations
from ..draw.rows import Drawn, RowDrawer, count_drawn_rows
from ..load.locks import SUITES_LOCK, LockedRows, read_lock, read_locked_rows
from ..model import Case, Claims, EarlierSuite, Step
from ..plan.rows import SEED, Plan, parse_drawn_id
from ..system.files import replace_text


def digest_rows(plan: Plan) -> str:
    """Return one SHA-256 over every row that a whole run can call, and what each document says of its calls.

    It covers all on which an outcome and its verdicts depend. Titles, links, findings and the rule of a case are not
    in it: they only put a failure into words.
    """
    spec = plan.suite.spec
    total = hashlib.sha256(repr([(each.id, each.sha256) for each in spec.documents.values()]).encode())
    drawer = RowDrawer(spec, Claims(tuple(spec.operations)), plan.suite.combinations)
    drawn = drawer.rows(Drawn(SEED, count_drawn_rows(plan.suite.combinations)))
    calls: dict[str, str] = {}
    for row in chain(plan.rows, drawn):
        case = row.case
        if case.id not in calls:
            calls[case.id] = _describe_calls(case)
        due = [
            (each.meaning.kind, each.meaning.dst, each.meaning.max_length, bool(each.meaning.rules), each.documents)
            for number in range(len(case.steps))
            for each in row.meanings(number)
        ]
        # evidence holds the first drawn row of each kind of failure, and its rule is part of the kind
        rule = case.rule if parse_drawn_id(row.id) else ""
        total.update(repr((row.id, calls[case.id], row.has_listed_type, sorted(row.facets), rule, due)).encode())
        row.free_steps()
    return total.hexdigest()


_ONLY_WORDS = frozenset({"file", "rule", "title", "links", "place", "expect"})


def _describe_calls(part: Case | Step) -> str:
    """Name the fields that are given, so that a new one leaves the digests of cases without it as they are."""
    given = {each.name: getattr(part, each.name) for each in fields(part) if each.name not in _ONLY_WORDS}
    given = {name: value for name, value in given.items() if value != getattr(type(part), name, None)}
    if isinstance(part, Case):
        given["steps"] = [*map(_describe_calls, part.steps)]
    return repr(given)


def lock_suite(plan: Plan, cases_path: Path) -> None:
    """Add a suite to the list of those with its rows. Those with a row that it lacks are dropped."""
    ids = read_lock(cases_path)
    own = LockedRows(digest_rows(plan), len(ids), count_combinations(), (plan.suite.digest,))
    kept = []
    for each in read_locked_rows(cases_path):
        earlier = EarlierSuite(frozenset(ids[each.cases :]), each.combinations)
        if (each.cases, each.combinations) == (own.cases, own.combinations):
            before = [suite for suite in each.suites if suite != plan.suite.digest] if each.digest == own.digest else []
            own = own._replace(suites=(*before, *own.suites))
        elif digest_rows(plan.as_of(earlier)) == each.digest:
            kept.append(each)
    lines = [line for each in (*kept, own) for line in each.lines]
    replace_text(cases_path / SUITES_LOCK, "".join(f"{line}\n" for line in lines))
