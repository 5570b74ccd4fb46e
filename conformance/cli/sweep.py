"""`conformance sweep BACKEND`: every call of a bounded domain, what fails by rule, the smallest example of each."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path

from ..evidence.results import name_with_version
from ..isolate.backend import isolation_of
from ..isolate.process.distribute import run_in_processes
from ..meaning.domain import Domain
from ..model import FAIL, LAYOUTS, NOT_CLAIMED, RIGHT, VERDICTS, Claims, Identity, Spec
from ..run.quiet_backend import quiet_backend
from ..sweep.blocks import SweepRequest, blocks_of, is_too_large, list_variants
from ..sweep.context import BackendLost, close_backend, context_of
from ..sweep.run_block import run_block
from ..sweep.sweep_file import SWEEP_FILE, SweepResults, make_header_of_sweep, write
from ..sweep.tally import EMPTY, KINDS, FailedCalls, Tally, add
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, UNTRUSTED
from ..system.files import lock_folder
from ..system.progress import Progress
from ..system.terminal import count_noun, lines, paint, say, table, verbatim
from ..verdict import planted
from .arguments import Stop, emit, load_spec_of, refuse_unknown, write_suite_option
from .parser import Parser, whole
from .request import check_names
from .shared_options import add_backend, add_isolation, add_jobs, add_limits, add_operation_and_type, read_limits

DEFAULT_OUT = Path("conformance-sweep")
_PLANTED_DOMAIN = Domain(max_rank=2, max_length=2, max_entries=2, lowest=-2, highest=2)

EXAMPLES = """\
  conformance sweep reference --rank 2 --max-dim 3    every call of a small domain
exit codes: 0 nothing fails · 1 a call fails · 2 usage · 3 cannot start · 4 not claimed · 5 untrusted"""


def add_options(parser: Parser) -> None:
    add_backend(parser)
    add_operation_and_type(parser)
    parser.add_argument(
        "--rank", type=whole, required=True, metavar="R", help="src has up to R dimensions, shape up to one more entry"
    )
    text = "the largest length of src and the largest entry of shape"
    parser.add_argument("--max-dim", type=whole, required=True, metavar="D", help=text)
    parser.many("--layout", "LAYOUT", "how src lies in memory (dense)")
    add_jobs(parser)
    parser.path("--out", "DIR", "where the results go (conformance-sweep)")
    add_isolation(parser)
    add_limits(parser)


def run(args: argparse.Namespace) -> int:
    """Sweep, write the results and show them; return 1 if a call failed."""
    spec = load_spec_of(args.suite)
    request = _read_request(args, spec)
    folder = args.out or DEFAULT_OUT
    try:
        with lock_folder(folder):
            (folder / SWEEP_FILE).unlink(missing_ok=True)
            results = _sweep(request, args, spec)
            write(folder, results)
    finally:
        close_backend()
    code, why = _conclude(results, args.operation or (), args.type or (), args.layout or ())
    if args.json:
        emit({**results.to_json(), "exit_code": code, "why": why, "out": str(folder / SWEEP_FILE)})
    else:
        _show(results, code, why)
        say(f"results: {folder / SWEEP_FILE}")
        if code in (CONFORMS, FAILS):
            words = ["run", args.backend]
            if code == FAILS:
                (rule, _), failure = _sort_by_calls(results.total)[0]
                words = ["check-adapter", args.backend] if failure.is_error else ["explain", rule]
            say(verbatim(f"next: conformance {shlex.join(words)}{write_suite_option(args.suite)}"))
    return code


def _sweep_planted_backend(request: SweepRequest, name: str) -> int:
    """Sweep a planted backend in the same way over a few calls, and count its failing verdicts."""
    small_request = request._replace(
        backend=f"planted:{name}", domain=_PLANTED_DOMAIN, ways=request.ways[:1], isolation="none"
    )
    tallies = (run_block(small_request, block) for block in blocks_of(small_request.domain))
    return sum(counts.get(FAIL, 0) for tally in tallies for counts in tally.verdicts.values())


def _sweep(request: SweepRequest, args: argparse.Namespace, spec: Spec) -> SweepResults:
    planted_failures = {name: _sweep_planted_backend(request, name) for name in planted.SWEPT}
    with quiet_backend():
        who = context_of(request).who
    header = make_header_of_sweep(request, spec, who)
    if not args.json:
        ways = count_noun(len(request.ways), "way")
        say(f"{request.domain}, each in {ways} of calling: {count_noun(request.calls, 'call')}")
    began = time.perf_counter()
    total, notes = _run_blocks(request, args.jobs, who)
    close_backend()  # nothing that the backend does now can reach the results
    for note in notes:
        say(paint("yellow", f"note: {note}"), sys.stderr if args.json else None)
    return SweepResults(header, total, planted_failures, round(time.perf_counter() - began, 3))


def _run_blocks(request: SweepRequest, jobs: int, who: tuple[Identity, Claims]) -> tuple[Tally, list[str]]:
    """Run all blocks; return the sum of their tallies, and notes on what else the backend did."""
    total, progress = EMPTY, Progress("sweeping", request.calls)
    take = partial(run_block, request, who=who)
    blocks, due = blocks_of(request.domain), blocks_of(request.domain)
    tallies = run_in_processes(jobs, take, blocks) if jobs > 1 else (take(block) for block in blocks)
    with closing(progress), quiet_backend() as notes, closing(tallies):
        for tally, block in zip(tallies, due, strict=True):
            if tally.calls != block.calls * len(request.ways):
                raise BackendLost(
                    f"a worker made {tally.calls:,} calls of a block of {block.calls * len(request.ways):,}"
                )
            total = add(total, tally)
            progress.at(total.calls)
    return total, notes


def _read_request(args: argparse.Namespace, spec: Spec) -> SweepRequest:
    check_names(spec, args.operation, args.type)
    refuse_unknown("layout", args.layout, LAYOUTS)
    domain = Domain(args.rank, args.max_dim, args.rank + 1, -2, args.max_dim)
    if is_too_large(domain):
        raise Stop(f"--rank {args.rank} --max-dim {args.max_dim}: the products of its lengths do not fit 62 bits")
    operations, types = args.operation or (), args.type or ()
    ways = list_variants(spec, operations, types, tuple(dict.fromkeys(args.layout or ("dense",))))
    for name in (*types, *operations):
        if all(name not in (way.operation, way.type) for way in ways):
            raise Stop(f"{name} would be in no call: none of these operations takes one of these types; leave it out")
    return SweepRequest(
        args.backend, domain, ways,
        isolation_of(args.backend, args.isolation), read_limits(args),
        args.suite and args.suite.resolve(), spec.digest,
    )  # fmt: skip


def _conclude(
    results: SweepResults, operations: Iterable[str], types: Iterable[str], layouts: Iterable[str]
) -> tuple[int, str]:
    """Return the exit code and the reason. The operations, types and layouts are those that somebody named."""
    claims = Claims.from_json(results.header["claims"])
    not_claimed = [each for each in operations if not claims.has_operation(each)]
    not_claimed += [each for each in types if not claims.has_type(each)]
    not_claimed += [each for each in dict.fromkeys(layouts) if not claims.has_layout(each)]
    escaped = planted.find_uncaught(planted.SWEPT, results.planted)
    failures = results.total.failures.values()
    failed = sum(failure.calls for failure in failures if not failure.is_error)
    errors = sum(failure.calls for failure in failures if failure.is_error)
    verdicts = {verdict for counts in results.total.verdicts.values() for verdict, number in counts.items() if number}
    if escaped:
        return UNTRUSTED, f"the planted backend {escaped[0]} was not caught: no count of this sweep holds"
    if failed or errors:
        of_backend, of_adapter = (count_noun(number, "call") for number in (failed, errors))
        error = f"{of_adapter} met an error of the adapter, so nothing is known of the backend there"
        return FAILS, "; ".join([f"{of_backend} failed"] * bool(failed) + [error] * bool(errors))
    if not verdicts & RIGHT:
        return INCOMPLETE, "the backend claims none of what was swept"
    if not_claimed:
        return INCOMPLETE, f"the backend does not claim {', '.join(not_claimed)}"
    some = " that the backend claims" if NOT_CLAIMED in verdicts else ""
    return CONFORMS, f"every call{some} went as the documents say"


def _sort_by_calls(total: Tally) -> list[tuple[tuple[str, str], FailedCalls]]:
    return sorted(total.failures.items(), key=lambda item: (-item[1].calls, item[0]))


def _show(results: SweepResults, code: int, why: str) -> None:
    total, who = results.total, results.header["backend"]
    say(paint("bold", name_with_version(who)))
    say()
    given = {verdict for counts in total.verdicts.values() for verdict in counts}
    heads = ("document", *KINDS, *(verdict for verdict in VERDICTS if verdict in given))
    rows = []
    for document, meanings in total.meanings.items():
        counts = {**meanings, **total.verdicts[document]}
        rows.append((document, *(f"{counts.get(name, 0):,}" for name in heads[1:])))
    say(table(rows, heads, range(1, len(heads))))
    claims, header = Claims.from_json(results.header["claims"]), results.header
    made = header["domain"]["calls"] * sum(claims.has_operation(way["operation"]) for way in header["ways"])
    say(f"{count_noun(made, 'call')} in {results.seconds} s")
    for (rule, diagnosis), failure in _sort_by_calls(total):
        say()
        way, number = failure.example["call"], count_noun(failure.calls, "call")
        say(f"{paint('red', diagnosis)} · {rule} · {number}; the smallest, {way}:")
        say(lines(failure.example["case"].rstrip().split("\n")))
        say(paint("dim", f"    # {failure.example['detail']}"))
    say()
    say(f"exit {code}: {why}")
