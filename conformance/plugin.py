"""pytest hooks and nothing else: under `pytest --adapter BACKEND` each row of the suite is an item.

What is collected
    The whole suite, after whatever pytest collects anyway: in an empty directory the suite alone, in somebody's
    repository their tests and then the suite. Arguments that name cases (`cases`, `cases/zero.yaml`,
    `cases/zero.yaml::meets-infer`, `cases/zero.yaml::meets-infer[StaticReshape-f32]`) narrow the suite to these, and
    where all arguments do so nothing else is collected; they name the bundled cases from every working directory.
    The suite's tests of itself, to which `testpaths` points in a clone, are left out unless they are asked for.

What the exit status says
    0 only where the whole target conforms. Where pytest alone would say 0 and the conclusion does not, the status is
    the conclusion's code, as of `conformance run`: 1 something in the target failed or erred, 4 incomplete (rows
    deselected, skipped by a conftest, not reached, everything unsupported). All other codes are pytest's own;
    `--collect-only` runs nothing, says nothing and keeps its 0.

How an item runs
    Items have no fixtures, so setup and teardown are left out and one report a row is made, unless somebody listens
    for the others: markers on an item, hooks of a conftest or a plugin, --junitxml, --pdb, --setup-only. Results
    travel on the call report, over xdist too; only the process that has the terminal concludes and writes files.
"""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import time
import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from . import canary
from . import report as reports
from .adapter import CannotStart
from .backend import Isolation, isolation_of, open_backend
from .commands import unknown
from .conclude import Conclusion, conclude, in_target
from .evidence import Target, Writer, header_of, read
from .load import cases_folder
from .load_cases import load_suite
from .model import Adapter, Claims, Isolated, Malformed, Result
from .plan import Plan, Row, plan_of
from .remote import Limits
from .report.facts import BAD
from .report.failure import headline, shown_of, told
from .run import contained, result_without_call, run
from .terminal import counted, printable

FOLDER = "cases"
_PHASES = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown", "pytest_runtest_logreport")
"""Hooks whose listeners may count on all three phases of an item."""
_CALL_SUFFICES = ("_pytest.", "xdist.", "conformance.", "_hypothesis_pytestplugin", "anyio.")
"""Where hooks live that need no more than the call, or look at test functions only."""
_PHASE_OPTIONS = ("xmlpath", "usepdb", "trace", "setuponly", "setupplan", "setupshow")


def register(config: pytest.Config) -> None:
    """Loads suite and backend, or says in one line why not, and joins the session."""
    option = config.option
    try:
        plan = plan_of(load_suite())
        target = _target(plan, option)
        named = _named(plan, config)
        with contained():
            isolation = isolation_of(option.conformance_adapter)
            adapter = open_backend(option.conformance_adapter, isolation)
            session = Conformance(config, plan, target, named, adapter, isolation)
    except (CannotStart, Malformed) as problem:
        raise pytest.UsageError(printable(str(problem))) from None
    config.pluginmanager.register(session, "reshape_conformance_session")


# ── what was asked for ────────────────────────────────────────────────────────────────────────────


def _target(plan: Plan, option: Any) -> Target:
    spec = plan.suite.spec
    types = {type_ for operation in spec.operations.values() for type_ in operation.types}

    def asked(what: str, known: Iterable[str]) -> tuple[str, ...]:
        names = tuple(getattr(option, f"conformance_{what}") or ())
        for name in names:
            if name not in known:
                raise pytest.UsageError(unknown(what, name, sorted(known)))
        return names

    return Target(
        asked("operation", spec.operations),
        asked("document", spec.documents),
        asked("type", types),
        large=bool(getattr(option, "conformance_large", False)),
    )


def _named(plan: Plan, config: pytest.Config) -> frozenset[str] | None:
    """The ids of the rows that the arguments name, which are taken out of pytest's; None where they name none."""
    if config.args_source.name == "TESTPATHS":
        own = Path(__file__).parent / "tests"
        config.args[:] = [arg for arg in config.args if not _same(config.invocation_params.dir / arg, own)]
        return None
    files = {row.case.file for row in plan.rows}
    rows: set[str] = set()
    others: list[str] = []
    found = False
    for arg in config.args:
        path, _, rest = arg.partition("::")
        file = _bundled(path, files, config.invocation_params.dir)
        if file is None:
            others.append(arg)
            continue
        chosen = [r.id for r in plan.rows if file in (r.case.file, FOLDER) and rest in ("", r.case.id, r.id)]
        if not chosen:
            names = {r.id if "[" in rest else r.case.id for r in plan.rows if r.case.file == file}
            hint = "pytest --adapter … --collect-only -q"
            raise pytest.UsageError(f"{file}: {unknown('case', rest, sorted(names), hint)}")
        found = True
        rows.update(chosen)
    if not found:
        return None
    config.args[:] = others
    return frozenset(rows)


def _bundled(path: str, files: Iterable[str], here: Path) -> str | None:
    """The name of a bundled case file or of their folder, if that is what a path means."""
    plain = path.replace(os.sep, "/").removeprefix("./").rstrip("/")
    if plain in files or (plain == FOLDER and not (here / path).is_dir()):
        return plain
    if _same(here / path, cases_folder()):
        return FOLDER
    if plain.endswith(".yaml") and _same((here / path).parent, cases_folder()):
        name = f"{FOLDER}/{Path(path).name}"
        return name if name in files else None
    return None


def _same(path: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.resolve() == other.resolve()
    return False


# ── items ─────────────────────────────────────────────────────────────────────────────────────────


class CaseFile(pytest.Collector):
    """A file of the suite; its node id is fixed, wherever pytest is started."""

    def __init__(self, conformance: Conformance, rows: list[Row], **options: Any) -> None:
        super().__init__(**options)
        self.conformance, self.rows = conformance, rows

    def collect(self) -> list[pytest.Item]:
        return [
            CaseRow.from_parent(self, name=row.id, nodeid=row.node_id, row=row, conformance=self.conformance)
            for row in self.rows
        ]


class CaseRow(pytest.Item):
    """A row of the plan."""

    def __init__(self, conformance: Conformance, row: Row, **options: Any) -> None:
        super().__init__(**options)
        self.conformance, self.row = conformance, row
        self.result: Result | None = None
        self.extra_keyword_matches.add(row.case.rule)
        self.location = (row.case.file, row.case.place.line - 1, row.id)

    def reportinfo(self) -> tuple[str, int, str]:
        return self.location[0], self.row.case.place.line - 1, self.location[2]

    def runtest(self) -> None:
        self.result = result = self.conformance.call(self.row)
        verdicts = {result.verdicts[document] for document in self.conformance.documents(self.row)}
        if not verdicts.isdisjoint(BAD):
            raise Broken(self.conformance.failure(self.row, result))
        if verdicts.isdisjoint(("pass", "observed")):
            pytest.skip(self.conformance.not_claimed(self.row))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        return excinfo.value.told if isinstance(excinfo.value, Broken) else super().repr_failure(excinfo, style)


class Told:
    """A failure as pytest prints it; `reprcrash.message` is what its short summary and JUnit take."""

    def __init__(self, text: str, message: str) -> None:
        self.text, self.message, self.reprcrash = text, message, self

    def __str__(self) -> str:
        return self.text

    def toterminal(self, writer: Any) -> None:
        for line in self.text.splitlines():
            writer.line(line)


class Broken(Exception):
    """A row failed or erred; no traceback is of any use."""

    def __init__(self, told_: Told) -> None:
        super().__init__(told_.text)
        self.told = told_


# ── the session ───────────────────────────────────────────────────────────────────────────────────


class Conformance:
    """The suite's part in a session: one backend, the rows asked for, and what became of them."""

    def __init__(
        self, config: pytest.Config, plan: Plan, target: Target, named: frozenset[str] | None, adapter: Adapter,
        isolation: Isolation,
    ) -> None:  # fmt: skip
        self.config, self.plan, self.target, self.named = config, plan, target, named
        self.adapter, self.claims, self.isolation = adapter, adapter.claims, isolation
        self.backend: str = config.option.conformance_adapter
        self.concludes = not hasattr(config, "workerinput")
        self.results: dict[str, Result] = {}
        self.caught: dict[str, int] = {}
        self.conclusion: Conclusion | None = None
        self.trouble: str | None = None
        self.seconds = 0.0
        self.in_phases = False
        self.capture: Any = None
        self.hook: Any = config.hook
        self.folder = os.getcwd()
        self.rows = {row.id: row for row in plan.rows}
        everything = Claims(tuple(plan.suite.spec.operations))
        self.wanted = [
            row for row in plan.rows if any(in_target(row, document, target, everything) for document in row.documents)
        ]

    # ── collecting ──

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Appends the case files to what the session collects."""
        outcome: Any = yield
        if isinstance(collector, pytest.Session):
            report = outcome.get_result()
            if report.passed:
                report.result = [*report.result, *self.files(collector)]

    def files(self, session: pytest.Session) -> Iterator[CaseFile]:
        by_file: dict[str, list[Row]] = {}
        for row in self.wanted:
            if self.named is None or row.id in self.named:
                by_file.setdefault(row.case.file, []).append(row)
        for file, rows in by_file.items():
            yield CaseFile.from_parent(session, name=file, nodeid=file, rows=rows, conformance=self)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Finds out who listens, once everybody who may has been loaded."""
        gc.freeze()  # thousands of rows and items that the collector would walk through again and again
        manager = self.config.pluginmanager.get_plugin("capturemanager")
        self.capture = getattr(manager, "item_capture", None)
        self.hook = session.ihook  # that of each of our items, whose path is the session's
        unknown_capture = manager is not None and self.capture is None
        self.in_phases = (
            unknown_capture
            or any(self.config.getoption(name, None) for name in _PHASE_OPTIONS)
            or any(
                not str(impl.function.__module__).startswith(_CALL_SUFFICES)
                for name in _PHASES
                for impl in getattr(session.ihook, name).get_hookimpls()
            )
        )

    # ── running ──

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """The call alone, where nothing can be set up; pytest's own protocol everywhere else, and for the last item,
        whose teardown is also that of the session."""
        if not isinstance(item, CaseRow) or self.in_phases or nextitem is None or next(item.iter_markers(), None):
            return None
        hook = self.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        call = pytest.CallInfo.from_call(
            partial(self.captured, item), "call", reraise=(pytest.exit.Exception, KeyboardInterrupt)
        )
        hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def captured(self, item: CaseRow) -> None:
        """Runs an item; what the backend prints becomes a section of the report."""
        with self.capture("call", item) if self.capture else contextlib.nullcontext():
            item.runtest()

    def call(self, row: Row) -> Result:
        """What `conformance run` would find; the repository's warning filters have no say in it."""
        began = time.perf_counter()
        if row.operation not in self.claims.operations:
            return result_without_call(row, "not claimed")
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            result = next(run([row], self.adapter, self.claims))
        self.seconds += time.perf_counter() - began
        with contextlib.suppress(OSError):
            if os.getcwd() != self.folder:
                os.chdir(self.folder)
        return result

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Sends the result along with the report of the call."""
        outcome: Any = yield
        if isinstance(item, CaseRow):
            report = outcome.get_result()
            if item.result is not None and call.when == "call":
                result = item.result
                vars(report)["conformance"] = (
                    result.row, dict(result.verdicts), dict(result.outcome), result.diagnosis, result.detail,
                )  # fmt: skip
            if report.skipped and isinstance(report.longrepr, tuple) and item.result is not None:
                report.longrepr = (item.row.case.file, item.row.case.place.line, report.longrepr[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what a row did; of several runs of one row, the first that is bad."""
        record = vars(report).get("conformance")
        if record is None or not self.concludes:
            return
        result = Result(*record)
        row = self.rows[result.row]
        before = self.results.get(row.id)
        if before is None or set(before.verdicts.values()).isdisjoint(BAD):
            self.results[row.id] = result
        if report.failed and isinstance(report.longrepr, str):  # came from an xdist worker as text alone
            report.longrepr = self.failure(row, result)  # type: ignore[assignment]

    # ── telling ──

    def documents(self, row: Row) -> list[str]:
        """The documents that the session judges a row by."""
        return [document for document in row.documents if document in (self.target.documents or (document,))]

    def failure(self, row: Row, result: Result) -> Told:
        """A failing row for people, with the command that repeats it."""
        words = ["pytest", "--adapter", self.backend]
        for document in self.target.documents:
            words += ["--document", document]
        if "large" in row.facets:
            words.append("--large")
        shown = shown_of(row, result)
        command = shlex.join([*words, row.node_id])
        return Told(told(shown, self.plan.suite.spec.rules[row.case.rule], command), headline(shown))

    def not_claimed(self, row: Row) -> str:
        if row.operation not in self.claims.operations:
            return f"not claimed: {row.operation}"
        return f"not claimed: {', '.join(sorted(facet for facet in row.facets if self.claims.leaves(facet)))}"

    # ── concluding ──

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Concludes, writes, and lets no session end with 0 that does not show conformity."""
        if not self.concludes or self.config.option.collectonly:
            return
        keyword = self.config.option.keyword or None
        if any(row.id not in self.results for row in self.wanted):
            self.target = Target(
                self.target.operations, self.target.documents, self.target.types, keyword, self.target.large
            )
        missed: tuple[str, ...] = ()
        if self.results:
            with contained():
                self.caught, missed = canary.escaped(self.plan, self.isolation, Limits())
        self.conclusion = conclude(self.plan, self.results, self.claims, self.target, escaped=missed)
        if self.config.option.conformance_out is not None:
            self.write(self.config.invocation_params.dir / self.config.option.conformance_out)
        if session.exitstatus == 0:
            session.exitstatus = self.conclusion.exit_code or (4 if self.trouble else 0)

    def pytest_unconfigure(self) -> None:
        """Ends the backend's process, if it has one."""
        if isinstance(self.adapter, Isolated):
            self.adapter.close()

    def write(self, out: Path) -> None:
        """The evidence, then the reports, as `conformance run` writes them."""
        header = header_of(self.plan.suite, self.adapter.identity, self.claims, self.target, self.backend)
        header["isolation"] = self.isolation
        try:
            writer = Writer(out / "results.jsonl", header)
            for row in self.plan.rows:
                writer.row(self.results.get(row.id) or result_without_call(row, "not run"))
            writer.close(self.seconds, canaries=self.caught)
            assert self.conclusion is not None
            reports.write(out, self.plan, read(out / "results.jsonl"), self.conclusion)
        except OSError as error:
            self.trouble = f"{error.filename or out}: {error.strerror or error}: nothing was written"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The closing sentences."""
        if self.conclusion is None:
            return
        write = terminalreporter.write_line
        identity = self.adapter.identity
        terminalreporter.write_sep("=", f"reshape conformance of {printable(f'{identity.name} {identity.version}')}")
        for sentence in self.conclusion.sentences:
            write(printable(sentence))
        missing = sum(row.id not in self.results for row in self.wanted)
        if missing:
            write(f"incomplete: {missing:,} of {counted(len(self.wanted), 'row')} not run{self.stopped()}", yellow=True)
        if self.trouble:
            write(self.trouble, red=True)
        elif self.config.option.conformance_out is not None:
            write(f"report: {Path(self.config.option.conformance_out) / 'report.html'}")
        code = self.conclusion.exit_code
        write(self.conclusion.why, bold=True, green=code == 0, red=code == 1, yellow=code not in (0, 1))

    def stopped(self) -> str:
        """What is known to have kept rows from being run."""
        option = self.config.option
        reasons = [f"-k {option.keyword!r}"] if option.keyword else []
        reasons += [f"-m {option.markexpr!r}"] if option.markexpr else []
        reasons += ["--deselect"] if option.deselect else []
        reasons += ["the arguments name some cases"] if self.named is not None else []
        reasons += [f"--maxfail {option.maxfail}"] if option.maxfail else []
        reasons += ["--lf"] if getattr(option, "lf", False) else []
        return f" ({', '.join(reasons)})" if reasons else ""
