"""`conformance merge DIR… --out DIR`: put the shards of one run together."""

from __future__ import annotations

import argparse

from ..evidence.folder import RESULTS, clear
from ..evidence.results import Refused, Tampered, Writer, read
from ..runner.shards import merge_shards
from ..system.exit_codes import UNTRUSTED
from ..system.files import InUse, lock_folder
from ..verdict.rejudge import refuse_unsound
from .arguments import Usage, load_plan
from .parser import Parser, path
from .run import conclude_and_report
from .shared_options import add_cases

EXAMPLES = """\
  conformance run reference --shard 1/2 --out build/one
  conformance run reference --shard 2/2 --out build/two
  conformance merge build/one build/two --out build/whole"""


def add_options(parser: Parser) -> None:
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help="the folders of all shards of one run")
    parser.path("--out", "DIR", "where the merged run goes", required=True)
    add_cases(parser)


def run(args: argparse.Namespace) -> int:
    """Merge, write, and conclude as `run` does."""
    plan = load_plan(args)
    paths = [folder / RESULTS for folder in args.folders]
    out = args.out.resolve()
    if any(path.resolve().parent == out for path in paths):
        raise Usage(f"--out {args.out} holds one of the shards; name another folder")
    try:
        with lock_folder(out, "conformance merge"):
            clear(out)
            parts = [read(path) for path in paths]
            whole = merge_shards(paths, parts)
            for path, part in zip(paths, parts, strict=True):
                refuse_unsound(part, plan, path)
            writer = Writer(out / RESULTS, whole.header)
            for result in whole.results:
                writer.row(result)
            evidence = writer.close(whole.seconds, whole.notes, whole.canaries)
            return conclude_and_report(args, plan, evidence, out)
    except Refused as refused:
        raise Usage(str(refused)) from None
    except InUse as in_use:
        raise Usage(f"--out {in_use}") from None
    except Tampered as tampered:
        raise Usage(str(tampered), code=UNTRUSTED) from None
