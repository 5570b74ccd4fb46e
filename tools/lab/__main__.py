"""`python -m tools.lab`: the environments of lab.yaml: list them for CI, say what is stale, run one, test one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
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
from .environments import CannotMake, Installation, lacking, list_run_words, words_of_tests
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
        return _status(lab, chosen, path.absolute().parent, args)
    installations = [Installation(path.absolute().parent, each) for each in chosen]
    if args.action == "test":
        return max(_test(each) for each in installations)
    return _run_and_publish(installations, args)


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


def _status(lab: LabFile, chosen: list[Environment], clone: Path, args: argparse.Namespace) -> int:
    """Show the state of each folder of results; 1 if some are stale."""
    names = {environment.name for environment in chosen}
    suite = load_suite(args.suite)
    every = states(lab, args.out or clone / REPORTS, suite, args.days)
    found = [state for state in every if not names or state.environment in names]
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


# ── test, run and certify ─────────────────────────────────────────────────────────────────────────


def _test(installation: Installation) -> int:
    """Run the suite's own tests in an environment; they skip what this machine lacks."""
    _make(installation)
    return installation.run(words_of_tests(installation.environment, installation.clone))


def _make(installation: Installation) -> None:
    installation.make()
    installation.build()
    say(f"{installation.environment.name}: installed in {installation.home.relative_to(installation.clone)}")


def _run_and_publish(installations: list[Installation], args: argparse.Namespace) -> int:
    """Run or certify the backends of each environment, and publish at the end, because that writes every page."""
    clone = installations[0].clone
    reports = (args.out or clone / REPORTS).absolute()
    made: list[Installation] = []
    codes: list[int] = []
    results: list[str] = []
    for installation in installations:
        environment = installation.environment
        if missing := lacking(environment):
            missed = " ".join(environment.backends)
            say(f"{environment.name}: this machine lacks {', '.join(missing)}; {missed}: untried")
            codes.append(CANNOT_START)
            continue
        if args.action == "certify" and environment.is_part:
            say(f"{environment.name}: runs a part of the suite, and a certificate is about the whole; `run` is for it")
            codes.append(CANNOT_START)
            continue
        try:
            _make(installation)
        except CannotMake as error:
            say_error(str(error))
            codes.append(error.exit_code)
            continue
        made.append(installation)
        for backend in environment.backends:
            out = clone / "build" / "lab" / environment.name / backend.replace("@", "-")
            if args.action == "certify":
                code = _certify(installation, backend, out, reports)
            else:
                code = installation.run(list_run_words(environment, backend, out, args.jobs))
            if code in _PUBLISHABLE and environment.is_part:
                say(f"{backend}: not published, as only a part of the suite was run; its results are in {out}")
            elif code in _PUBLISHABLE:
                results.append(str(out))
            else:
                say(f"{backend}: not published, see above")
                codes.append(code)
    if results:
        code = made[-1].run(["-m", "conformance", "publish", str(reports), *results])
        codes += [code] * (code not in _PUBLISHABLE)
    return max(codes, default=0)


def _certify(installation: Installation, backend: str, out: Path, reports: Path) -> int:
    """Certify a backend and run it again; a backend that does not conform gets a certificate that says so."""
    environment, clone = installation.environment, installation.clone
    make_keys(clone, reports)
    code = installation.run(certify_words(environment, backend, out, clone))
    if code in _PUBLISHABLE and installation.run(audit_words(environment, backend, out, clone, reports)):
        say(f"{backend}: stays self-tested, because the second run did not give the same answers, see above")
    return code


if __name__ == "__main__":
    sys.exit(main())
