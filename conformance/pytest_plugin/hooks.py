"""The pytest hooks: under `pytest --adapter BACKEND` each row is an item. docs/pytest.md says what users see.

`--collect-only`, `--setup-only` and `--setup-plan` call no row and keep their exit status. The session ends with an
error if a worker of xdist runs another backend or suite than the process that concludes.

Items have no fixtures, and run in pytest's own protocol. Results travel on the call report, over xdist too; only the
process that has the terminal concludes and writes files.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ..adapter import digest_of_adapter
from ..cli.arguments import Stop, locate
from ..evidence.command import list_pytest_suite_options, list_row_options, list_run_words
from ..evidence.folder import clear
from ..isolate.backend import close_backend, note_processes, open_backend
from ..load.cases import load_suite
from ..load.folders import find_cases_folder, find_folders, layers
from ..model import NOT_RUN, Adapter, Malformed, Result, Verdict, worst
from ..plan.rows import Row, plan_of
from ..report.failure_text import format_failure, format_headline
from ..report.row_results import RowResult
from ..run.ended_process import AFTER_HANGS
from ..run.quiet_backend import quiet_backend, stay_in
from ..runner.run_suite import BackendSetup, RunRequest, choose_rows, set_up_backend
from ..system.exit_codes import CommandError
from ..system.files import lock_folder
from ..system.groups import group_pairs
from ..system.terminal import plain
from ..verdict import waive
from . import selection
from .calls import RowCalls
from .conclusion import SessionConclusion, keep_warning_filters_out
from .failure_sections import FailureSections
from .items import CaseFile, CaseRow, RowFailure
from .settings import list_limit_options, read_request


def register(config: pytest.Config) -> None:
    """Load suite and backend and join the session. UsageError says in one line what is wrong."""
    folder = selection.suite_folder(config)
    try:
        with _be_in(config.invocation_params.dir) as folder_of_tests:
            plan = plan_of(load_suite(folder))
            target = selection.target(plan, config.option)
            named = selection.select_named_rows(plan, config, layers(find_folders(folder).cases, find_cases_folder()))
            request = read_request(config, plan, target)
            waivers = waive.load_all(request.waivers, request.plan)  # before anything is removed or started
            locks = ExitStack()
            config.add_cleanup(locks.close)
            _lock_out(config, locks)
            with quiet_backend():
                adapter = open_backend(request.backend, request.isolation, request.limits)
                try:
                    setup = set_up_backend(request, adapter, waivers)
                    session = ConformanceSession(config, request, named, adapter, setup, folder_of_tests)
                except BaseException:
                    close_backend(adapter)
                    raise
    except Malformed as malformed:
        raise pytest.UsageError(*(plain(str(locate(problem, folder))) for problem in malformed.problems)) from None
    except CommandError as problem:
        raise pytest.UsageError(plain(str(problem))) from None
    except OSError as error:
        raise pytest.UsageError(plain(f"{error.filename or 'this process'}: {error.strerror or error}")) from None
    config.pluginmanager.register(session, "reshape_conformance_session")
    if config.pluginmanager.has_plugin("terminal"):
        config.pluginmanager.register(FailureSections(config))


@contextmanager
def _be_in(folder: Path | str) -> Iterator[str]:
    """Be in the folder of the command line, where its paths begin, as a conftest may have left it; give the other."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield before
    finally:
        os.chdir(before)


def _calls_rows(config: pytest.Config) -> bool:
    return not any(getattr(config.option, name, False) for name in ("collectonly", "setuponly", "setupplan"))


def _lock_out(config: pytest.Config, locks: ExitStack) -> None:
    """Lock the folder of --conformance-out for the session, and remove what an earlier one left there."""
    option = config.option
    if option.conformance_out is None or not _calls_rows(config) or hasattr(config, "workerinput"):
        return
    out = config.invocation_params.dir / option.conformance_out
    try:
        locks.enter_context(lock_folder(out))
        clear(out)
    except CommandError as error:
        raise Stop(f"--conformance-out: {error}") from None


class ConformanceSession:
    """The suite's part in a session: one backend, the rows to run, and their results."""

    def __init__(
        self, config: pytest.Config, request: RunRequest, named: frozenset[str] | None, adapter: Adapter,
        setup: BackendSetup, folder_of_tests: str,
    ) -> None:  # fmt: skip
        self.config, self.request, self.named, self.adapter, self.setup = config, request, named, adapter, setup
        self.concludes = not hasattr(config, "workerinput")
        self.pin = self.describe_backend()
        self.folder, self.folder_of_tests = str(config.invocation_params.dir), folder_of_tests
        self.is_after_row = False
        self.calls = RowCalls(request, adapter, setup.claims)
        self.rows = {row.id: row for row in request.plan.rows}
        self.wanted = choose_rows(request)
        self.conclusion = SessionConclusion(config, request, adapter, setup, self.wanted, named is not None)

    def describe_backend(self) -> str:
        """Name the backend and the suite in one line; two processes with the same line give the same verdicts."""
        identity = self.adapter.identity
        waived, request = self.setup.header["waivers"], self.request
        parts = (
            (identity.detail, self.setup.claims), digest_of_adapter(request.backend), request.plan.suite.digest,
            (waived, request.isolation, request.limits),
        )  # fmt: skip
        short = [hashlib.sha256(repr(part).encode()).hexdigest()[:12] for part in parts]
        name = plain(f"{identity.name} {identity.version}")
        return "{} (detail and claims {}, adapter {}, suite {}, waivers and limits {})".format(name, *short)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Append the case files to what the session collects."""
        outcome: Any = yield
        if isinstance(collector, pytest.Session):
            report = outcome.get_result()
            if report.passed:
                named = (row for row in self.wanted if self.named is None or row.id in self.named)
                by_file = group_pairs((row.case.file, row) for row in named)
                report.result = [*report.result] + [
                    CaseFile.from_parent(collector, name=file, nodeid=file, rows=rows, conformance=self)
                    for file, rows in by_file.items()
                ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        gc.freeze()  # thousands of rows and items that the garbage collector would visit again and again
        if _calls_rows(self.config):
            rows = (item.row for item in session.items if isinstance(item, CaseRow))
            self.calls.call_ahead(row for row in rows if self.setup.waive_call(row) is None)

    def call(self, row: Row) -> Result:
        """Run a row as `conformance run` does, whatever warning filters the repository has."""
        stay_in(self.folder, [])  # a test of the repository may have left it, and relative paths begin here
        me = os.getpid()
        with keep_warning_filters_out():
            result = self.setup.waive_call(row) or self.setup.apply_waivers(row, self.calls.call(row))
        if os.getpid() != me:  # a backend in this process forked, and the fork returned
            os._exit(0)
        stay_in(self.folder, [])  # until a test of the repository comes: with jobs, threads start processes meanwhile
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Tell Allure the parameters of a row, without which it counts the rows of a case as retries of one test.

        After a row, a test of the repository begins in the folder where its conftest files have left pytest.
        """
        if not isinstance(item, CaseRow) and self.is_after_row:
            stay_in(self.folder_of_tests, [])
        self.is_after_row = isinstance(item, CaseRow)
        if isinstance(item, CaseRow) and self.config.getoption("allure_report_dir", None):
            row, allure = item.row, importlib.import_module("allure")
            way = row.shape_passed_as
            shape = way if way == "attribute" else f"{way} {row.shape_type}"
            for name, value in (("operation", row.operation), ("type", row.type), ("shape", shape)):
                allure.dynamic.parameter(name, value)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        if isinstance(item, CaseRow):
            report = outcome.get_result()
            if call.when == "call":
                item.attach(report)
            if report.skipped and isinstance(report.longrepr, tuple) and item.result is not None:
                report.longrepr = (item.row.case.file, item.row.case.place.line, report.longrepr[2])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record the result of a row. If a row ran several times, its first failure counts."""
        record = vars(report).get("conformance")
        if record is None or not self.concludes:
            return
        fields, pin, extras = record
        if pin != self.pin:
            self.conclusion.is_void = True
            worker = getattr(report, "worker_id", "a worker")
            raise pytest.UsageError(
                f"{worker} runs {pin}, and this process {self.pin}: give all workers of pytest-xdist the same"
            )
        result = Result.from_json(fields)._replace(**extras)
        row = self.rows[result.row]
        self.conclusion.record(result)
        self.conclusion.seconds += report.duration
        if report.failed and isinstance(report.longrepr, str):  # from a worker of xdist, which sends text only
            report.longrepr = self.failure(row, result)  # type: ignore[assignment]

    def verdicts(self, result: Result) -> set[Verdict]:
        """Return the verdicts of the documents that the session judges by."""
        chosen = self.request.target.documents
        return {verdict for document, verdict in result.verdicts.items() if not chosen or document in chosen}

    def failure(self, row: Row, result: Result) -> RowFailure:
        """Describe a failing row for a person, with the command that repeats it."""
        shown = RowResult(row, result, worst(result.verdicts.values()))
        commands = [] if result.needs_calls_before else [self.repeat_command(row)]
        return RowFailure(format_failure(shown, self.request.plan.suite.spec.rules, commands), format_headline(shown))

    def repeat_command(self, row: Row) -> str:
        words = ["pytest", "--adapter", self.request.backend, *list_pytest_suite_options(self.setup.header)]
        words += list_limit_options(self.request)
        for document in self.request.target.documents:
            words += ["--document", document]
        if "large" in row.facets:
            words.append("--large")
        return shlex.join([*words, row.pytest_id])

    def skip_reason(self, row: Row, result: Result) -> str:
        """Say what of a row the backend does not claim, or why the row was not called."""
        if result.outcomes == AFTER_HANGS:
            words = [*list_run_words(self.setup.header), "--max-hangs", "0", *list_row_options(row)]
            return f"{result.outcome.describe()}; to call it: {shlex.join(words)}"
        if NOT_RUN in result.verdicts.values():
            return "; ".join(["not run", *note_processes(self.adapter)])
        if row.operation not in self.setup.claims.operations:
            return f"not claimed: {row.operation}"
        return f"not claimed: {', '.join(sorted(self.setup.claims.find_unclaimed(row.facets)))}"

    def waiver_reason(self, result: Result) -> str:
        waiver = next(each for each in self.setup.header["waivers"] if each["number"] == result.waiver)
        return f"waived until {waiver['expires']}: {waiver['reason']} ({waiver['place']})"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Conclude and write; replace exit status 0 if the target was not shown to conform."""
        if self.concludes and _calls_rows(self.config):
            self.calls.close()
            stay_in(self.folder_of_tests, [])
            with _be_in(self.folder):
                code = self.conclusion.conclude()
            if session.exitstatus == 0:
                session.exitstatus = code

    def pytest_unconfigure(self) -> None:
        self.calls.close()
        close_backend(self.adapter)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        self.conclusion.summarize(terminalreporter, self.repeat_command)
