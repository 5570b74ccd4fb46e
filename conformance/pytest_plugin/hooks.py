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
    `--collect-only` runs nothing, says nothing and keeps its 0. A worker of xdist that runs another backend or suite
    than the process which concludes ends the session with an error.

How an item runs
    Items have no fixtures, so setup and teardown are left out and one report a row is made, unless somebody listens
    for the others: markers on an item, hooks of a conftest or a plugin, --junitxml, --pdb, --setup-only. Where nobody
    listens for the protocol either, items are gone through without it. Results travel on the call report, over xdist
    too; only the process that has the terminal concludes and writes files.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import shlex
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, TypeGuard

import pytest

from .. import report as reports
from ..adapter import CannotStart, digest_of_adapter, resolve_claims
from ..certify import canary, planted
from ..certify.conclude import Conclusion, conclude, in_target
from ..certify.evidence import Tampered, Target, Writer, header_of
from ..certify.folder import RESULTS, clear
from ..cli.arguments import Usage, located
from ..isolate.backend import Isolation, isolation_of, open_backend
from ..isolate.started import Limits
from ..load.cases import load_suite
from ..load.folders import cases_folder, layers
from ..model import Adapter, Claims, Isolated, Malformed, Result, Verdict
from ..plan.rows import Plan, Row, plan_of
from ..report.failure_text import format_failure, format_headline, pair_row
from ..report.rows import BAD
from ..run.contain import contain
from ..run.row import result_without_call, run
from ..system.files import InUse, lock_folder
from ..system.terminal import counted, plain
from . import asked
from .items import CaseFile, CaseRow, Told

Manner = Literal["phases", "call", "bare"]
"""How an item is run: as pytest runs any; its call alone, within pytest's protocol; or its call, bare of that too."""
_PHASES = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown", "pytest_runtest_logreport")
"""Hooks whose listeners may count on all three phases of an item."""
_AROUND = ("pytest_runtestloop", "pytest_runtest_protocol", "pytest_runtest_makereport")
"""Hooks whose listeners may count on being asked about every item."""
_CALL_SUFFICES = ("_pytest.", "xdist.", "conformance.", "_hypothesis_pytestplugin", "anyio.")
"""Where hooks live that need no more than the call, or look at test functions only."""
_BARE_SUFFICES = tuple(home for home in _CALL_SUFFICES if home != "xdist.")  # whose loop deals the items out
_PHASE_OPTIONS = ("xmlpath", "usepdb", "trace", "setuponly", "setupplan", "setupshow")


def register(config: pytest.Config) -> None:
    """Loads suite and backend, or says in one line why not, and joins the session."""
    option = config.option
    folders: tuple[Path | None, ...] = ()
    try:
        held = ExitStack()
        config.add_cleanup(held.close)
        _claim_folder(config, held)
        folders = asked.folders(config)
        plan = plan_of(load_suite(*folders))
        target = asked.target(plan, option)
        named = asked.named(plan, config, layers(folders[1], cases_folder()))
        with contain():
            isolation = isolation_of(option.conformance_adapter)
            adapter = open_backend(option.conformance_adapter, isolation)
            session = Conformance(config, plan, target, named, adapter, isolation)
    except Malformed as malformed:
        raise pytest.UsageError(*(plain(str(located(each, folders))) for each in malformed.problems)) from None
    except (CannotStart, Usage, InUse) as problem:
        raise pytest.UsageError(plain(str(problem))) from None
    config.pluginmanager.register(session, "reshape_conformance_session")


def _claim_folder(config: pytest.Config, held: ExitStack) -> None:
    """Lock the folder of --conformance-out for the session, and remove what an earlier one left there."""
    option = config.option
    if option.conformance_out is None or option.collectonly or hasattr(config, "workerinput"):
        return
    out = config.invocation_params.dir / option.conformance_out
    try:
        held.enter_context(lock_folder(out, f"pytest --adapter {option.conformance_adapter}"))
        clear(out)
    except OSError as error:
        raise Usage(f"--conformance-out {option.conformance_out}: {error.strerror or error}") from None


@contextlib.contextmanager
def heedless() -> Iterator[None]:
    """Keep the repository's warning filters, which may make errors of warnings, out of what is judged.

    What a backend warns of goes on to pytest, in a form that is safe to print.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with warnings.catch_warnings(record=True) as log:
            yield
        for warning in log:
            warnings.warn_explicit(plain(str(warning.message)), UserWarning, warning.filename, warning.lineno)


# ── the session ───────────────────────────────────────────────────────────────────────────────────


class Conformance:
    """The suite's part in a session: one backend, the rows asked for, and what became of them."""

    def __init__(
        self, config: pytest.Config, plan: Plan, target: Target, named: frozenset[str] | None, adapter: Adapter,
        isolation: Isolation,
    ) -> None:  # fmt: skip
        self.config, self.plan, self.target, self.named = config, plan, target, named
        self.adapter, self.isolation = adapter, isolation
        self.claims = resolve_claims(adapter, plan.suite.spec.operations)
        self.backend: str = config.option.conformance_adapter
        self.concludes = not hasattr(config, "workerinput")
        self.pin = self.pinned()
        self.refused = False
        self.results: dict[str, Result] = {}
        self.caught: dict[str, int] = {}
        self.conclusion: Conclusion | None = None
        self.trouble: str | None = None
        self.trouble_code = 4
        self.seconds = 0.0
        self.manner: Manner = "phases"
        self.capture: Any = None
        self.hook: Any = config.hook
        self.folder = os.getcwd()
        self.next: deque[Row] = deque()
        self.running = self.calls()
        self.rows = {row.id: row for row in plan.rows}
        everything = Claims(tuple(plan.suite.spec.operations))
        self.wanted = [
            row for row in plan.rows if any(in_target(row, document, target, everything) for document in row.documents)
        ]

    def pinned(self) -> str:
        """Who is called for what, in a line: as long as it is the same in two processes, so are their verdicts."""
        identity = self.adapter.identity
        parts = (identity.detail, self.claims), digest_of_adapter(self.backend), self.plan.suite.digest
        short = [hashlib.sha256(repr(part).encode()).hexdigest()[:12] for part in parts]
        name = plain(f"{identity.name} {identity.version}")
        return "{} (detail and claims {}, adapter {}, suite {})".format(name, *short)

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
        if manager is None or self.capture:  # else it captures in a way that is not known
            self.manner = self.manner_of(session)

    def manner_of(self, session: pytest.Session) -> Manner:
        """The least that all who listen can do with."""

        def heard(names: Iterable[str], enough: tuple[str, ...]) -> bool:
            hooks = [impl for name in names for impl in getattr(session.ihook, name).get_hookimpls()]
            return any(not str(impl.function.__module__).startswith(enough) for impl in hooks)

        option, plugins = self.config.getoption, self.config.pluginmanager
        if any(option(name, None) for name in _PHASE_OPTIONS) or heard(_PHASES, _CALL_SUFFICES):
            return "phases"
        late = plugins.has_plugin("faulthandler") and float(self.config.getini("faulthandler_timeout") or 0)
        if late or not plugins.has_plugin("warnings") or heard(_AROUND, _BARE_SUFFICES):
            return "call"
        return "bare"

    # ── running ──

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """pytest's own loop, but for what it wraps around an item, where nobody needs that."""
        if self.manner != "bare" or session.testsfailed or self.config.option.collectonly:
            return None
        for item, nextitem in zip_longest(session.items, session.items[1:]):
            if self.alone(item, nextitem):
                self.heeded(item)
            else:
                self.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """The call alone, where nothing can be set up, and pytest's own protocol everywhere else."""
        if not self.alone(item, nextitem):
            return None
        self.reported(item)
        return True

    def alone(self, item: pytest.Item, nextitem: pytest.Item | None) -> TypeGuard[CaseRow]:
        """Whether the call of an item is all of it; the teardown of the last is also that of the session."""
        plain = isinstance(item, CaseRow) and nextitem is not None and not item.own_markers
        return plain and self.manner != "phases"

    def heeded(self, item: CaseRow) -> None:
        """Runs an item, and hands on what it warned of, as pytest does."""
        with warnings.catch_warnings(record=True) as log:
            self.reported(item)
        for warning in log:
            told = {"warning_message": warning, "nodeid": item.nodeid, "when": "runtest", "location": None}
            self.hook.pytest_warning_recorded.call_historic(kwargs=told)

    def reported(self, item: CaseRow) -> None:
        """Runs an item and reports on it."""
        hook, name = self.hook, item.nodeid
        hook.pytest_runtest_logstart(nodeid=name, location=item.location)
        call = pytest.CallInfo.from_call(
            partial(self.captured, item), "call", reraise=(pytest.exit.Exception, KeyboardInterrupt)
        )
        if self.manner == "bare" and call.excinfo is None:
            report = pytest.TestReport.from_item_and_call(item, call)
            item.attach(report)
        else:
            report = hook.pytest_runtest_makereport(item=item, call=call)
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=name, location=item.location)

    def captured(self, item: CaseRow) -> None:
        """Runs an item; what the backend prints becomes a section of the report."""
        with self.capture("call", item) if self.capture else contextlib.nullcontext():
            item.runtest()

    def calls(self) -> Iterator[Result]:
        """The results of rows in the order in which they are called for."""
        return run(iter(self.next.popleft, None), self.adapter, self.claims)

    def call(self, row: Row) -> Result:
        """What `conformance run` would find; the repository's warning filters have no say in it."""
        began = time.perf_counter()
        self.next.append(row)
        try:
            with heedless():
                result = next(self.running)
        except BaseException:
            self.running = self.calls()  # the one before has ended with that
            raise
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
            if call.when == "call":
                item.attach(report)
            if report.skipped and isinstance(report.longrepr, tuple) and item.result is not None:
                report.longrepr = (item.row.case.file, item.row.case.place.line, report.longrepr[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what a row did; of several runs of one row, the first that is bad."""
        record = vars(report).get("conformance")
        if record is None or not self.concludes:
            return
        *fields, pin = record
        if pin != self.pin:
            self.refused = True
            worker = getattr(report, "worker_id", "a worker")
            raise pytest.UsageError(
                f"{worker} runs {pin}, and this process {self.pin}: give all workers of pytest-xdist the same"
            )
        result = Result(*fields)
        row = self.rows[result.row]
        before = self.results.get(row.id)
        if before is None or set(before.verdicts.values()).isdisjoint(BAD):
            self.results[row.id] = result
        if report.failed and isinstance(report.longrepr, str):  # came from an xdist worker as text alone
            report.longrepr = self.failure(row, result)  # type: ignore[assignment]

    # ── telling ──

    def verdicts(self, result: Result) -> set[Verdict]:
        """The verdicts of the documents that the session judges by."""
        chosen = self.target.documents
        return {verdict for document, verdict in result.verdicts.items() if not chosen or document in chosen}

    def failure(self, row: Row, result: Result) -> Told:
        """A failing row for people, with the command that repeats it."""
        words = ["pytest", "--adapter", self.backend, *asked.words(self.config.option)]
        for document in self.target.documents:
            words += ["--document", document]
        if "large" in row.facets:
            words.append("--large")
        shown = pair_row(row, result)
        command = shlex.join([*words, row.node_id])
        return Told(format_failure(shown, self.plan.suite.spec.rules[row.case.rule], command), format_headline(shown))

    def not_claimed(self, row: Row) -> str:
        if row.operation not in self.claims.operations:
            return f"not claimed: {row.operation}"
        return f"not claimed: {', '.join(sorted(facet for facet in row.facets if self.claims.leaves(facet)))}"

    # ── concluding ──

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Concludes, writes, and lets no session end with 0 that does not show conformity."""
        if not self.concludes or self.refused or self.config.option.collectonly:
            return
        keyword = self.config.option.keyword or None
        if any(row.id not in self.results for row in self.wanted):
            self.target = Target(
                self.target.operations, self.target.documents, self.target.types, keyword, self.target.large
            )
        escaped: tuple[str, ...] = ()
        if self.results:
            with contain(), heedless():
                self.caught = canary.caught(self.plan, self.isolation, Limits())
            escaped = planted.escaped(self.caught, self.isolation)
        self.conclusion = conclude(self.plan, self.results, self.claims, self.target, escaped=escaped)
        self.close()  # before anything is written: what still runs could change it
        if self.config.option.conformance_out is not None:
            self.write(self.config.invocation_params.dir / self.config.option.conformance_out)
        if session.exitstatus == 0:
            session.exitstatus = self.conclusion.exit_code or (self.trouble_code if self.trouble else 0)

    def pytest_unconfigure(self) -> None:
        self.close()

    def close(self) -> None:
        """End the backend's process, if it has one."""
        if isinstance(self.adapter, Isolated):
            self.adapter.close()

    def write(self, out: Path) -> None:
        """The evidence, then the reports, as `conformance run` writes them."""
        given = dict(zip(("spec", "cases"), asked.folders(self.config), strict=True))
        header = header_of(self.plan.suite, self.adapter.identity, self.claims, self.target, self.backend, given)
        header["isolation"] = self.isolation
        try:
            writer = Writer(out / RESULTS, header)
            for row in self.plan.rows:
                writer.row(self.results.get(row.id) or result_without_call(row, "not run"))
            evidence = writer.close(self.seconds, canaries=self.caught)
            assert self.conclusion is not None
            reports.write(out, self.plan, evidence, self.conclusion)
        except OSError as error:
            self.trouble = f"{error.filename or out}: {error.strerror or error}: nothing was written"
        except Tampered as tampered:
            self.trouble, self.trouble_code = str(tampered), 5

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The closing sentences."""
        if self.conclusion is None:
            return

        def write(text: str, **markup: bool) -> None:
            terminalreporter.write_line(plain(text), **markup)

        identity = self.adapter.identity
        terminalreporter.write_sep("=", plain(f"reshape conformance of {identity.name} {identity.version}"))
        for sentence in self.conclusion.sentences:
            write(sentence)
        missing = sum(row.id not in self.results for row in self.wanted)
        if missing:
            write(f"incomplete: {missing:,} of {counted(len(self.wanted), 'row')} not run{self.stopped()}", yellow=True)
        if self.trouble:
            write(self.trouble, red=True)
        elif self.config.option.conformance_out is not None:
            write(f"report: {Path(self.config.option.conformance_out) / 'report.html'}")
        code, why = self.conclusion.exit_code, self.conclusion.why
        if not code and self.trouble:
            code, why = self.trouble_code, "not shown: what was asked for as evidence was not written"
        write(why, bold=True, green=code == 0, red=code == 1, yellow=code not in (0, 1))

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
