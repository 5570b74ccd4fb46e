"""Check the claims of an adapter: is what it claims supported, and does something work that it does not claim?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from ..model import Adapter, Claims, Outcome, covers
from ..plan.rows import Plan, Row
from ..run.row import call_first


class Check(NamedTuple):
    word: Literal["ok", "mend", "note"]
    check: str
    text: str

    @classmethod
    def of(cls, check: str, sound: str, problem: str | None) -> Check:
        """Return a check that is ok and says what is sound, or names the problem to mend."""
        return cls("mend", check, problem) if problem else cls("ok", check, sound)


def check_claims(adapter: Adapter, claims: Claims, plan: Plan) -> Iterator[Check]:
    """Make a legal call for each facet, and compare the outcome with the claims."""
    unsupported: list[str] = []
    works: list[str] = []
    for facet, row in _with_rank(plan.rows, claims):
        outcome = call_first(row, adapter)
        if not claims.excludes(facet) and outcome.kind in ("unsupported", "error"):
            unsupported.append(_find_named_facet(row, outcome) or facet)
            yield _advise(unsupported[0], outcome)
            break  # whoever leaves it out leaves out every higher rank
    for facet, row in sorted(_find_witnesses(plan.rows, claims).items()):
        if any(covers(name, facet) for name in unsupported):
            continue
        outcome = call_first(row, adapter)
        if claims.excludes(facet):
            works += [facet] * (outcome.kind == "tensor" and facet != "declared")  # ignoring that answers it too
        elif outcome.kind in ("unsupported", "error"):
            name = _find_named_facet(row, outcome) or facet
            if name not in unsupported:
                unsupported.append(name)
                yield _advise(name, outcome)
        elif outcome.kind != "tensor":
            what = f"{facet} is claimed, and {outcome.kind}: {outcome.message}"
            yield Check("note", "claims", f"{what}; `conformance run` will judge that")
    for operation in plan.suite.spec.operations:
        if operation not in claims.operations:
            plain = (row for row in plan.rows if row.operation == operation and is_plain(row))
            works += [operation for row in islice(plain, 1) if call_first(row, adapter).kind == "tensor"]
    if works:
        yield Check("note", "claims", f"not claimed, and may be, because it works: {', '.join(works)}")
    if not unsupported:
        yield Check("ok", "claims", "nothing that is claimed is unsupported")


def _find_named_facet(row: Row, outcome: Outcome) -> str | None:
    """Return the facet of the call that the adapter named as unsupported, if it named one."""
    name = outcome.message or ""
    return name if outcome.kind == "unsupported" and any(covers(name, facet) for facet in row.facets) else None


def _advise(facet: str, outcome: Outcome) -> Check:
    how = "unsupported" if outcome.kind == "unsupported" else "the adapter fails"
    is_of_protocol = (outcome.message or "").startswith("ProtocolError: ")
    remedy = "`not_claimed` does not mend that" if is_of_protocol else f"add {facet!r} to not_claimed, or support it"
    return Check("mend", "claims", f"{facet} is claimed, and {how}: {outcome.message}; {remedy}")


def is_plain(row: Row) -> bool:
    """Ask whether a row is one call that is legal in every document."""
    return len(row.steps) == 1 and all(judged.meaning.kind == "legal" for judged in row.steps[0].meanings)


def _with_rank(rows: Iterable[Row], claims: Claims) -> list[tuple[str, Row]]:
    """Return a row for each rank of src, the lowest first, with as few other facets as there are."""
    ordinary = _list_ordinary_facets(claims)
    by_facet: dict[str, Row] = {}
    for row in rows:
        facet = f"rank:{len(row.case.steps[0].src)}"
        if row.type != "f32" or facet not in row.facets or row.operation not in claims.operations:
            continue
        if any(map(claims.excludes, row.facets - {facet})):
            continue
        if facet not in by_facet or len(row.facets - ordinary) < len(by_facet[facet].facets - ordinary):
            by_facet[facet] = row
    return sorted(by_facet.items(), key=lambda pair: len(pair[1].case.steps[0].src))


def _list_ordinary_facets(claims: Claims) -> frozenset[str]:
    """Return the facets that nearly every adapter supports, as far as they are claimed."""
    ordinary = frozenset(["type:f32", "shape-type:s64", "runtime-shape", *(f"rank:{rank}" for rank in range(1, 13))])
    return ordinary - claims.find_unclaimed(ordinary)


def _find_witnesses(rows: Iterable[Row], claims: Claims) -> dict[str, Row]:
    """Return, for each facet, a legal row that has no other facet beyond the ordinary ones that are claimed."""
    ordinary = _list_ordinary_facets(claims)
    by_facet: dict[str, Row] = {}
    for row in rows:
        if row.operation not in claims.operations or row.case.large:
            continue
        own = row.facets - ordinary or row.facets & {"runtime-shape"}
        if len(own) == 1 and not own <= by_facet.keys() and is_plain(row):  # that lowers it, so only at last
            by_facet[next(iter(own))] = row
    return by_facet
