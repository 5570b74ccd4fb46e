"""`conformance report DIR`: writes the reports again from the evidence that lies in a folder."""

from __future__ import annotations

import argparse

from .. import report
from ..certify.conclude import concluded
from ..certify.evidence import Refused
from ..certify.folder import RESULTS
from ..certify.rejudge import read_and_judge
from ..load.cases import load_suite
from ..plan.rows import plan_of
from ..system.files import InUse, lock_folder
from ..system.terminal import say
from .arguments import Usage, emit, folder_given


def run(args: argparse.Namespace) -> int:
    """Judge every row again and write the reports; 0 once they are written, whatever they say of the backend."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    folder = folder_given("DIR", args.folder)
    assert folder is not None
    try:
        with lock_folder(folder, "conformance report"):
            evidence = read_and_judge(folder / RESULTS, plan)
            conclusion = concluded(plan, evidence)
            written = report.write(folder, plan, evidence, conclusion)
    except Refused as refused:
        raise Usage(str(refused)) from None
    except InUse as in_use:
        raise Usage(str(in_use)) from None
    if args.json:
        emit({"written": [str(path) for path in written], "exit_code": conclusion.exit_code, "why": conclusion.why})
    else:
        say(f"wrote {', '.join(path.name for path in written)}")
        say(f"the run that wrote the evidence ended with exit {conclusion.exit_code}: {conclusion.why}")
        say(f"this exit code says only that the reports are written; next: conformance verify {folder} --conforms")
    return 0
