"""Runs that are verified, for the tests of that."""

from collections.abc import Callable
from pathlib import Path

from conformance.model import NOT_CALLED, Result
from conformance.plan.rows import Plan
from conformance.report.verify import verify_report


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8", newline="\n")


def call_only(name: str) -> Callable[[list[Result]], list[Result]]:
    """Make the results those of a run that was to call only the rows with a name in their ids."""

    def leave(result: Result) -> Result:
        idle = Result(result.row, dict.fromkeys(result.verdicts, "not run"), NOT_CALLED)
        return result if name in result.row else idle

    return lambda results: [*map(leave, results)]


def find_mismatches(path: Path, plan: Plan) -> str:
    """The mismatches that verify finds."""
    return "\n".join(map(str, verify_report(path, plan).mismatches))


FOR_TURNS = {
    "number": 1, "place": "waivers.yaml:2", "case": "turns", "reason": "known", "link": "x", "owner": "x",
    "expires": "2099-01-01",
}  # fmt: skip
