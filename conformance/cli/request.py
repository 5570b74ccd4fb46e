"""The options that `run` and `certify` share, and the RunRequest that is made of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from ..adapter import FACETS, describe_no_facet
from ..draw.rows import count_drawn_rows
from ..evidence.results import InvalidEvidence, Target
from ..isolate.backend import isolation_of
from ..load.schema import read_file
from ..load.strict_yaml import line_of, raise_problems
from ..model import Claims, Place, Problem, Spec, covers
from ..plan.rows import Plan, plan_of
from ..report.verify import OtherSuite
from ..runner.run_suite import RunRequest
from ..system.exit_codes import FAILS
from .arguments import Stop, refuse_unknown
from .parser import Parser, one_line, path
from .shared_options import add_backend, add_limits, read_limits


def add_request_options(parser: Parser) -> None:
    add_backend(parser)
    parser.many("--require", "NAME", "a document, type or facet that must be shown")
    parser.many("--waivers", "FILE", "known failures that are waived", type=path)
    parser.path("--claims", "FILE", "what the backend must claim, exactly")
    add_limits(parser)
    parser.add_argument("--large", action="store_true", help="also tensors of more than 2^31 elements (some 16 GiB)")
    parser.once("--tester", "NAME", "who tests, for the evidence and the report", type=one_line)


def read_common_options(args: argparse.Namespace, plan: Plan) -> RunRequest:
    """Return the request for a whole run with the shared options; Stop if one cannot be carried out."""
    refuse_wrong_cases(plan)
    return RunRequest(
        backend=args.backend,
        plan=plan,
        target=Target(large=args.large, require=check_requirements(args.require, plan)),
        isolation=isolation_of(args.backend, args.isolation),
        limits=read_limits(args),
        waivers=tuple(args.waivers or ()),
        pinned=None if args.claims is None else (args.claims, read_claims(args.claims)),
        drawn_rows=count_drawn_rows(),
        tester=args.tester,
    )


def refuse_wrong_cases(plan: Plan) -> None:
    """Raise Malformed if an added case expects what no document says: contracts judge, so nobody else would notice.

    The same if a key of it does not get what it needs, or if it has no row.
    """
    if plan.suite.added:
        from ..selfcheck import check_cases  # few runs add cases

        added = tuple(row for row in plan.rows if row.case.id in plan.suite.added)
        problems = [*check_cases.find_mistakes({row.case.id: row.case for row in added}.values())]
        problems += check_cases.check_expectations(replace(plan, rows=added))
        if plan.select is None:
            problems += check_cases.find_cases_without_rows(plan, sorted(plan.suite.added))
        raise_problems(problems)


def check_names(
    spec: Spec, operations: Sequence[str] | None, types: Sequence[str] | None, documents: Sequence[str] | None = None
) -> None:
    """Raise Stop for the name of an operation, type or document that there is not."""
    refuse_unknown("operation", operations, spec.operations)
    refuse_unknown("document", documents, spec.documents)
    refuse_unknown("type", types, spec.types)


def check_requirements(names: Sequence[str] | None, plan: Plan) -> tuple[str, ...]:
    """Check the names given with --require; Stop if there is no such document, operation, type or facet."""
    if not names:
        return ()
    spec = plan.suite.spec
    every = plan_of(plan.suite) if plan.select else plan  # a facet may be of rows that -k leaves out
    facets = {facet for row in every.rows for facet in row.facets}
    claimable = {name for name in FACETS if any(covers(name, facet) for facet in facets)}
    known = {*claimable, *spec.operations, *spec.documents, *spec.types}
    refuse_unknown("requirement", names, known, "conformance list documents` and, for facets, `adapters/README.md")
    return tuple(names)


def read_claims(path: Path) -> Claims:
    content, problems = read_file(path, "claims")
    raise_problems([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    raise_problems([
        Problem(Place(str(path), line_of(content, ("not_claimed", at))), f"not_claimed has {describe_no_facet(facet)}")
        for at, facet in enumerate(content.get("not_claimed", ())) if facet not in FACETS
    ])  # fmt: skip
    return Claims.from_json(content)


@contextmanager
def refusals_fail() -> Iterator[None]:
    """Let evidence or a certificate that is refused end the command with FAILS: it was read, and says no."""
    try:
        yield
    except (InvalidEvidence, OtherSuite) as refused:
        raise Stop(str(refused), code=FAILS) from None
