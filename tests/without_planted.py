"""`conformance`, but no run calls the planted backends: `python -m tests.without_planted run …`.

In separate processes they take most of the time of a short run.
"""

import sys

from conformance.cli.main import main
from conformance.isolate.backend import Isolation
from conformance.isolate.process.launch import ProcessLimits
from conformance.plan.rows import Plan
from conformance.runner import planted_backends
from conformance.verdict.planted import list_planted


def run_all(plan: Plan, isolation: Isolation, limits: ProcessLimits, few: bool = False) -> dict[str, int]:
    """Say that each planted backend has failed once."""
    return dict.fromkeys((each.name for each in list_planted(isolation)), 1)


if __name__ == "__main__":
    planted_backends.run_all = run_all
    sys.exit(main())
