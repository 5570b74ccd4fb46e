"""`conformance merge DIR… --out DIR`: the shards of one run as if it had never been divided."""

from __future__ import annotations

import argparse

from ..certify import RESULTS, refuse_contradictions
from ..evidence import Refused, Writer, merged, read
from ..load_cases import load_suite
from ..plan import plan_of
from . import Usage, folder_given
from .run import told


def run(args: argparse.Namespace) -> int:
    """Merges, writes, and concludes as `run` does."""
    plan = plan_of(load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases)))
    paths = [folder / RESULTS for folder in args.folders]
    out = args.out.resolve()
    if any(path.resolve().parent == out for path in paths):
        raise Usage(f"--out {args.out} holds one of the shards; name another folder")
    try:
        header, results = merged(paths)
        refuse_contradictions(plan, results, header, out / RESULTS)
        footers = [read(path).footer for path in paths]
        writer = Writer(out / RESULTS, header)
        for result in results:
            writer.row(result)
        notes = tuple(dict.fromkeys(note for footer in footers for note in footer["notes"]))
        canaries = {name: min(f["canaries"].get(name, 0) for f in footers) for name in footers[0]["canaries"]}
        writer.close(sum(footer["seconds"] for footer in footers), notes, canaries)
        return told(args, plan, out)
    except Refused as refused:
        raise Usage(str(refused)) from None
