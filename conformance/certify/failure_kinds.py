"""The rows that failed in the target of a run, grouped by kind: what went wrong, and whose sentence it breaks."""

from __future__ import annotations

from dataclasses import dataclass

from ..model import BAD, WAIVED, Claims, Result, fails
from ..plan.rows import Plan, Row
from ..system.terminal import count_noun
from .blame import HEAVIEST_FIRST, Blamed
from .drawn import plan_of_run
from .evidence import Evidence, Target
from .standing import Blames, has_standing

MOST_KINDS = 12
"""The most kinds of failures on the terminal; the report has all."""


@dataclass(frozen=True)
class FailureKind:
    """Rows that failed with one diagnosis, and with the same heaviest blame."""

    diagnosis: str
    blamed: Blamed | None
    """None for an error of the adapter."""
    members: tuple[tuple[Row, Result], ...]

    @property
    def about(self) -> str:
        """Name the blame, the rule and the number of rows."""
        about = f"{self.blamed.blame}: {self.blamed.premise.rule}" if self.blamed else self.members[0][0].case.rule
        return f"{about} · {count_noun(len(self.members), 'row')}"


@dataclass(frozen=True)
class Failures:
    """The kinds of failures of a run; those to be mended first stand first."""

    kinds: tuple[FailureKind, ...]
    outside: int
    """The verdicts that failed outside the target."""

    @property
    def title(self) -> str:
        alive = any(fails(result.verdicts.values()) for kind in self.kinds for _, result in kind.members)
        return "failures" if alive else "failures, all waived"


_Groups = dict[tuple[str, Blamed | None], list[tuple[Row, Result]]]


def group_failures(plan: Plan, evidence: Evidence, blames: Blames) -> Failures:
    """Group the rows that failed in the target. Rows that are waived are left out if any other failed."""
    by_row = {row.id: row for row in plan_of_run(plan, evidence).rows}
    target, claims = Target.of(evidence.header["target"]), Claims.of(evidence.header["claims"])
    failures: _Groups = {}
    waived: _Groups = {}
    outside = 0
    for result in evidence.results:
        if result.diagnosis:
            row = by_row[result.row]
            failed = {document: verdict for document, verdict in result.verdicts.items() if verdict in {*BAD, WAIVED}}
            inside = {d: v for d, v in failed.items() if has_standing(row, d, target, claims)}
            outside += sum(verdict in BAD and document not in inside for document, verdict in failed.items())
            if inside:
                blamed = min(blames.get(row.id, {}).values(), key=_weight, default=None)
                groups = failures if fails(inside.values()) else waived
                groups.setdefault((result.diagnosis, blamed), []).append((row, result))
    kinds = [FailureKind(*about, tuple(members)) for about, members in (failures or waived).items()]
    return Failures(tuple(sorted(kinds, key=lambda kind: (_weight(kind.blamed), -len(kind.members)))), outside)


def _weight(blamed: Blamed | None) -> int:
    return HEAVIEST_FIRST.index(blamed.blame) if blamed else -1  # an error of the adapter comes first
