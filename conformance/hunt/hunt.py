"""Search new cases for a call that a backend gets wrong, and shrink it.

Cases are drawn from a seed, and calls are made and judged as they are for the suite's own cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ..adapter import resolve_claims
from ..draw.calls import SeededDraws
from ..draw.cases import draw_case
from ..draw.factors import Factors
from ..meaning.contract import contracts
from ..model import RIGHT, Adapter, Case, Isolated, Result, Spec
from ..plan.rows import Row, rows_of
from ..run.row import run_rows
from ..system.progress import track
from .shrink import shrink
from .write_case import rule_against
from .write_drawn import write_as_drawn

_OF_SEVERAL = ("nodes-compose", "each-call-alone")
"""Rules about several nodes or calls. One alone that fails in the same way goes against another rule."""


class Counterexample(NamedTuple):
    row: Row
    result: Result

    @property
    def rule(self) -> str:
        return rule_against(self.row, self.result)

    @property
    def text(self) -> str:
        return write_as_drawn(self.row, self.result)


class HuntResult(NamedTuple):
    examples: int
    """The number of examples tried."""
    counterexample: Counterexample | None
    steady: bool = True
    """The same call failed again, in a process without earlier calls if there is another process."""
    right: int = 0
    """The number of rows in which the backend did what is expected; without any, nothing was shown."""


def hunt(
    adapter: Adapter, spec: Spec, examples: int, seed: int = 0, *, operations: Sequence[str] = (),
    types: Sequence[str] = (),
) -> HuntResult:  # fmt: skip
    """Try `examples` cases of some operations and types, or of all, until one fails; a seed tries the same ones."""
    factors, compiled = Factors(spec), contracts(spec)
    claims, of_types, right = resolve_claims(adapter, spec.operations), [*(types or spec.types)], 0

    def find(case: Case) -> Counterexample | None:
        """Return the first row of a case in which the backend fails or errs."""
        nonlocal right
        for row in rows_of([case], spec, compiled):
            if not operations or row.operation in operations:
                (result,) = run_rows([row], adapter, claims)
                if result.is_failure:
                    return Counterexample(row, result)
                right += not RIGHT.isdisjoint(result.verdicts.values())
        return None

    def find_same(like: Counterexample, case: Case) -> Counterexample | None:
        other = find(case)
        if other is None or other.result.diagnosis != like.result.diagnosis:
            return None
        return other if like.rule in (other.rule, *_OF_SEVERAL) else None

    for example in track("hunting", range(examples), examples):
        case = draw_case(SeededDraws(f"hunt {seed} {example}"), of_types, factors)
        if found := find(case):
            if find(case) is None:
                return HuntResult(example + 1, found, steady=False)
            smallest = shrink(found.row.case, partial(find_same, found), found)
            if isinstance(adapter, Isolated):
                adapter.renew()
            return HuntResult(example + 1, smallest, steady=find_same(smallest, smallest.row.case) is not None)
    return HuntResult(examples, None, right=right)
