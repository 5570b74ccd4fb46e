"""`python -m tools.lab`: the environments of lab.yaml: list them for CI, say what is stale, run one, test one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from conformance.cli.arguments import Stop, emit, load_plan, pick, say_error
from conformance.cli.parser import Parser, positive
from conformance.cli.shared_options import add_jobs, add_json, add_suite
from conformance.load.cases import load_suite
from conformance.model import Malformed
from conformance.system.exit_codes import CANNOT_START, CONFORMS, FAILS, INCOMPLETE, OVERDUE, USAGE, CommandError
from conformance.system.terminal import count_noun, say, table

from .certificates import audit_words, certify_words, make_keys, sign_again
from .environments import Installation, lacking, list_run_words, words_of_tests
from .read import Environment, LabFile, load_lab
from .sentences import FILE, load_sentences
from .sentences import check as check_sentences
from .state import STALE, State, states

LAB, REPORTS = Path("lab.yaml"), Path("reports")
_PUBLISHABLE = (CONFORMS, FAILS, INCOMPLETE, OVERDUE)
"""Exit codes of a run that was whole, as far as its target goes."""
EXAMPLES = """\
  python -m tools.lab plan --json           the jobs of a CI matrix
  python -m tools.lab status                which published results are stale, and why
  python -m tools.lab run onnx jax          make these environments, run their backends, publish"""


def main(words: Sequence[str] | None = None) -> int:
    """Do one action; a mistake is one line."""
    parser = Parser(
        prog="python -m tools.lab", description="Run all libraries again.", epilog=f"for example:\n{EXAMPLES}"
    )
    text = "plan: list the environments; status: say what is stale; run: run and publish; certify: the same with "
    text += "certificates, run a second time; sign: sign what is published again, as the suite concludes by now; "
    text += "test: the suite's own tests; check: what the READMEs say of libraries"
    parser.add_argument("action", choices=("plan", "status", "run", "certify", "sign", "test", "check"), help=text)
    parser.add_argument("names", nargs="*", metavar="NAME", help="environments of lab.yaml (plan and status: all)")
    parser.path("--lab", "FILE", "the environments (lab.yaml)")
    text = "status: results older than N days are stale (90)"
    parser.add_argument("--days", type=positive, default=90, metavar="N", help=text)
    add_jobs(parser, 2)
    parser.path("--out", "DIR", "the folder of published results (reports)")
    add_suite(parser)
    add_json(parser)
    try:
        return run(parser.parse_args(words))
    except CommandError as error:
        say_error(str(error))
        return error.exit_code
    except Malformed as malformed:
        for problem in malformed.problems:
            say_error(str(problem))
        return USAGE


def run(args: argparse.Namespace) -> int:
    """Do what the action says for the named environments."""
    path = args.lab or LAB
    if not path.is_file():
        raise Stop(f"--lab {str(path)!r} does not exist; it lies at the top of a clone of the suite")
    if args.action == "check":
        return _check(path.absolute().parent, args)
    if args.action == "sign":
        return _sign(path.absolute().parent, args)
    lab = load_lab(path)
    chosen = [lab.environments[pick("environment", name, lab.environments)] for name in args.names]
    if args.action in ("run", "certify", "test") and not chosen:
        raise Stop(f"say which environment to {args.action}: {', '.join(lab.environments)}")
    if args.action == "plan":
        return _plan(lab, chosen or [*lab.environments.values()], args)
    if args.action == "status":
        return _status(lab, chosen, args)
    installations = [Installation(path.absolute().parent, each) for each in chosen]
    return max(_act(each, args) for each in installations)


# ── plan ──────────────────────────────────────────────────────────────────────────────────────────


def _plan(lab: LabFile, chosen: list[Environment], args: argparse.Namespace) -> int:
    jobs = [_job(lab, environment) for environment in chosen]
    if args.json:
        emit({"include": jobs})
    else:
        rows = [(each["name"], " ".join(each["backends"]), " ".join(each["needs"]) or "-") for each in jobs]
        say(table(rows, ("environment", "backends", "needs")))
    return 0


def _job(lab: LabFile, environment: Environment) -> dict[str, Any]:
    """Return what a job of a CI matrix has to know."""
    return {
        "name": environment.name,
        "runner": [*lab.labels(environment)],
        "needs": [*environment.needs],
        "backends": [*environment.backends],
        "versions": {backend: environment.version_of(backend) for backend in environment.backends},
        "target": {
            key: list(value) if isinstance(value, tuple) else value for key, value in environment.target.items()
        },
    }


# ── status ────────────────────────────────────────────────────────────────────────────────────────


def _status(lab: LabFile, chosen: list[Environment], args: argparse.Namespace) -> int:
    """Show the state of each folder of results; 1 if some are stale."""
    names = {environment.name for environment in chosen}
    suite = load_suite()
    found = [
        state for state in states(lab, args.out or REPORTS, suite, args.days) if not names or state.environment in names
    ]
    if args.json:
        emit({"days": args.days, "suite": suite.digest, "results": [state._asdict() for state in found]})
    else:
        say(table([_row(state) for state in found], ("environment", "backend", "results", "state")))
        say()
        counts = {word: sum(state.word == word for state in found) for word in dict.fromkeys(s.word for s in found)}
        say(", ".join(f"{number} {word}" for word, number in counts.items()))
        if stale := list(dict.fromkeys(state.environment for state in found if state.word == STALE)):
            say(f"next: python -m tools.lab run {' '.join(stale)}")
    return 1 if any(state.word == STALE for state in found) else 0


def _row(state: State) -> tuple[str, ...]:
    why = f": {state.why}" if state.why else ""
    return state.environment or "-", state.backend or "-", state.folder, f"{state.word}{why}"


# ── check ─────────────────────────────────────────────────────────────────────────────────────────


def _check(clone: Path, args: argparse.Namespace) -> int:
    """Show the sentences about libraries that the published rows do not show; 1 if there are any."""
    reports = args.out or clone / REPORTS
    sentences = load_sentences(clone / REPORTS / FILE)
    problems = check_sentences(sentences, clone, reports, load_plan(args.suite))
    if args.json:
        emit({"sentences": len(sentences), "problems": [str(problem) for problem in problems]})
    else:
        for problem in problems:
            say(str(problem))
        say(f"{count_noun(len(sentences), 'sentence')}, {count_noun(len(problems), 'problem')}")
    return 1 if problems else 0


# ── sign ──────────────────────────────────────────────────────────────────────────────────────────


def _sign(clone: Path, args: argparse.Namespace) -> int:
    """Sign what is published again, and say so; the pages are written by `conformance publish`."""
    reports = args.out or clone / REPORTS
    make_keys(clone, reports)
    done = list(sign_again(clone, reports, load_plan(args.suite)))
    say(table(done, ("results", "statement")))
    say(f"next: conformance publish {reports}")
    return 0


# ── run and test ──────────────────────────────────────────────────────────────────────────────────


def _act(installation: Installation, args: argparse.Namespace) -> int:
    """Make an environment, and run its backends or its tests in it."""
    environment = installation.environment
    if args.action != "test" and (missing := lacking(environment)):  # tests skip what is not here
        say(f"{environment.name}: this machine lacks {', '.join(missing)}; {' '.join(environment.backends)}: untried")
        return CANNOT_START
    installation.make()
    installation.build()
    say(f"{environment.name}: installed in {installation.home.relative_to(installation.clone)}")
    if args.action == "test":
        return installation.run(words_of_tests(environment, installation.clone))
    return _certify(installation, args) if args.action == "certify" else _run_and_publish(installation, args)


# ── certify ───────────────────────────────────────────────────────────────────────────────────────


def _certify(installation: Installation, args: argparse.Namespace) -> int:
    """Certify each backend, run it again, and publish its certificate, also if it does not conform."""
    environment, clone, reports = installation.environment, installation.clone, _reports(installation, args)
    if environment.target.keys() - {"large"}:
        say(f"{environment.name}: runs a part of the suite, and a certificate is about the whole; `run` is for it")
        return CANNOT_START
    make_keys(clone, reports)
    failed = []
    for backend, out in _outs(installation):
        code = installation.run(certify_words(environment, backend, out, clone))
        if code not in _PUBLISHABLE:
            failed.append(backend)
            continue
        if installation.run(audit_words(environment, backend, out, clone, reports)):
            say(f"{backend}: stays self-tested, because the second run did not give the same answers, see above")
        words = ["-m", "conformance", "publish", str(reports), str(out)]  # finds the keys in reports/signers
        failed += [backend] * (installation.run(words) not in _PUBLISHABLE)
    if failed:
        say(f"{environment.name}: not certified: {', '.join(failed)}, see above")
    return CANNOT_START if failed else 0


def _reports(installation: Installation, args: argparse.Namespace) -> Path:
    reports: Path = args.out or installation.clone / REPORTS
    return reports.absolute()


def _run_and_publish(installation: Installation, args: argparse.Namespace) -> int:
    environment = installation.environment
    codes: list[int] = []
    results: list[str] = []
    for backend, out in _outs(installation):
        codes.append(installation.run(list_run_words(environment, backend, out, args.jobs)))
        if codes[-1] in _PUBLISHABLE:
            results.append(str(out))
    if results:
        words = ["-m", "conformance", "publish", str(_reports(installation, args)), *results]
        codes.append(installation.run(words))
    failed = [code for code in codes if code not in _PUBLISHABLE]
    if failed:
        say(f"{environment.name}: {count_noun(len(failed), 'command')} of {len(codes)} failed, see above")
    return max(failed, default=0)


def _outs(installation: Installation) -> Iterator[tuple[str, Path]]:
    """Yield the backends of an environment, each with the folder of its run."""
    for backend in installation.environment.backends:
        yield backend, installation.clone / "build" / "lab" / installation.environment.name / backend.replace("@", "-")


if __name__ == "__main__":
    sys.exit(main())
