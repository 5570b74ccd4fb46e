"""The end of a pytest session: the conclusion, the evidence and reports, and the sentences on the terminal."""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from .. import report as reports
from ..evidence.folder import PAGE, RESULTS
from ..evidence.results import Evidence, Tampered, name_unfinished
from ..evidence.writer import Writer
from ..isolate.backend import close_backend, list_ends, note_processes, open_backend, use_jobs
from ..isolate.process.own_command import describe_end
from ..model import BAD, NOT_RUN, Adapter, Result
from ..plan.rows import Row, parse_drawn_id
from ..report.judged_run import JudgedRun, conclude_run
from ..run.ended_process import AFTER_HANGS
from ..run.quiet_backend import quiet_backend, remove_places
from ..run.row import make_result_without_call
from ..runner import planted_backends
from ..runner.drawn_run import DrawnRun
from ..runner.fresh_calls import FreshCalls
from ..runner.run_suite import BackendSetup, RunRequest, note_after_hangs, refuse_changed_adapter
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, UNTRUSTED, CommandError
from ..system.terminal import count_noun, plain
from ..verdict.document_table import lay_out_documents
from ..verdict.failure_kinds import group_failures
from ..verdict.sentences import note_fewer_calls
from .failure_sections import write_failures


@contextlib.contextmanager
def keep_warning_filters_out() -> Iterator[None]:
    """Run with default warning filters, since the repository's may turn a backend's warnings into errors.

    The warnings go on to pytest afterwards, in a form that is safe to print.
    """
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("default")
        yield
    if log:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for warning in log:
                warnings.warn_explicit(plain(str(warning.message)), UserWarning, warning.filename, warning.lineno)


class SessionConclusion:
    def __init__(
        self, config: pytest.Config, request: RunRequest, adapter: Adapter, setup: BackendSetup, wanted: list[Row],
        names_rows: bool,
    ) -> None:  # fmt: skip
        self.config, self.request, self.adapter, self.setup = config, request, adapter, setup
        self.wanted, self.names_rows = wanted, names_rows
        self.results: dict[str, Result] = {}
        self.seconds = 0.0
        self.is_void = False
        """Whether a worker of xdist ran another backend or suite, so that nothing can be concluded."""
        self.run: JudgedRun | None = None
        self.cut_short: str | None = None
        """Why planted backends or drawn rows were not all called."""
        self.trouble: str | None = None
        self.trouble_code = INCOMPLETE
        self.unwritten: tuple[str, ...] = ()
        """The reports that were not written, and why; the evidence is, so that the exit code stays."""

    def record(self, result: Result) -> None:
        """Keep a result; a failure is never replaced."""
        before = self.results.get(result.row)
        if before is None or set(before.verdicts.values()).isdisjoint(BAD):
            self.results[result.row] = result

    def conclude(self) -> int:
        """Run the planted backends, conclude, write what --conformance-out asks for, and return the exit code."""
        if self.is_void:
            return 0  # the session ends with a usage error
        caught, drawn = dict[str, int](), self._draw_rows()
        try:
            with quiet_backend(), keep_warning_filters_out():
                caught = planted_backends.run_all(self.request.plan, self.request.isolation, self.request.limits)
                self._call_drawn_rows(drawn)
        except (CommandError, OSError, KeyboardInterrupt) as error:  # the results of rows that were called stay
            why = describe_end(error)[0] if isinstance(error, KeyboardInterrupt) else error
            self.cut_short = f"what a session calls after its rows was cut short: {why}"
            drawn.notes.append(self.cut_short)
        close_backend(self.adapter)  # before anything is written: a backend that still runs could change it
        out = self.config.option.conformance_out
        folder = None if out is None else self.config.invocation_params.dir / out
        try:
            refuse_changed_adapter(self.request.backend, self.setup.header)
            self.run = conclude_run(self.request.plan, self._write(folder, caught, drawn))
            if folder is not None:
                self.unwritten = reports.write(folder, self.run)
        except OSError as error:
            is_part_left = folder is not None and name_unfinished(folder / RESULTS).exists()
            self.trouble = f"{error.filename or folder}: {error.strerror or error}"
            self.trouble += "" if is_part_left else ": nothing was written"
        except Tampered as tampered:
            self.trouble, self.trouble_code = str(tampered), UNTRUSTED
        if self.run is None:
            self.run = conclude_run(self.request.plan, self._write(None, caught, drawn))
        return self.run.conclusion.exit_code or (self.trouble_code if self.trouble or self.cut_short else 0)

    def _draw_rows(self) -> DrawnRun:
        """Draw the rows that --drawn-rows asks for; none if only a part of the rows was run."""
        request, target = self.request, self.request.target
        is_part = target.operations or target.documents or target.types
        whole = not is_part and all(row.id in self.results for row in self.wanted)
        return DrawnRun(request.plan, self.setup, request.drawn_rows if whole else 0, target)

    def _call_drawn_rows(self, drawn: DrawnRun) -> None:
        """Call drawn rows; keep the results of those that fail."""
        request = self.request
        open_another = partial(open_backend, request.backend, request.isolation, request.limits)
        isolation, jobs, hangs = request.isolation, request.jobs, request.hangs
        with (
            use_jobs(self.adapter, open_another, self.setup.claims, isolation, jobs, hangs) as call,
            contextlib.closing(FreshCalls(open_another, self.setup.claims, isolation, drawn.notes.append)) as fresh,
        ):
            for row, result in drawn.run(call, fresh):
                if result is not None:
                    self.results[row.id] = result

    def _write(self, folder: Path | None, caught: Mapping[str, int], drawn: DrawnRun) -> Evidence:
        """Write the evidence as `conformance run` does; without a folder, into memory, and only of rows that ran."""
        header = dict(self.setup.header)
        if drawn.drawn.rows:
            header["drawn"] = drawn.drawn.to_json()
        writer = Writer(folder and folder / RESULTS, header)
        uncalled, fewer = Counter[str](), list[str]()
        for row in self.request.plan.rows:
            result = self.results.get(row.id)
            if result is None and folder is None:
                continue
            result = result or make_result_without_call(row, NOT_RUN)
            uncalled[row.case.id] += result.outcomes == AFTER_HANGS
            fewer.extend(note_fewer_calls(row, result))
            writer.row(result)
        for result in self.results.values():
            if parse_drawn_id(result.row):
                writer.row(result)
        hangs = note_after_hangs(+uncalled, self.request.limits.seconds, self.request.hangs.max_hangs)
        notes = (*self.setup.notes, *fewer, *hangs, *map(remove_places, (*drawn.notes, *note_processes(self.adapter))))
        return writer.close(self.seconds, notes, caught, drawn.counts, processes=list_ends(self.adapter))

    def summarize(self, terminalreporter: pytest.TerminalReporter, repeat_command: Callable[[Row], str]) -> None:
        """Print the conclusion, the failing rows by kind, and what is missing or was not written."""
        if self.run is None:
            return
        evidence, conclusion = self.run.evidence, self.run.conclusion

        def write(text: str, **markup: bool) -> None:
            terminalreporter.write_line(plain(text), **markup)

        identity = self.adapter.identity
        name = f"{identity.name} {identity.version}"
        terminalreporter.write_sep("=", plain(f"reshape conformance of {name}: {conclusion.label}"))
        for text in lay_out_documents(conclusion):
            write(text)
        for note in (*conclusion.notes, *evidence.footer["notes"]):
            write(f"note: {note}", yellow=True)
        failures = group_failures(self.request.plan, evidence, conclusion)
        write_failures(failures, self.config.option.verbose > 0, repeat_command, write)
        missing = sum(row.id not in self.results for row in self.wanted)
        if missing:
            rows = count_noun(len(self.wanted), "row")
            write(f"incomplete: {missing:,} of {rows} not run{self._reasons()}", yellow=True)
        if self.trouble:
            write(self.trouble, red=True)
        elif (out := self.config.option.conformance_out) is not None:
            for line in self.unwritten:
                write(line, red=True)
            write(f"results: {Path(out) / RESULTS}" if self.unwritten else f"report: {Path(out) / PAGE}")
        code, why = conclusion.exit_code, conclusion.why
        if not code and (self.trouble or self.cut_short):
            what = "what was asked for as evidence was not written" if self.trouble else self.cut_short
            code, why = self.trouble_code, f"not shown: {what}"
        write(why, bold=True, green=code == CONFORMS, red=code == FAILS, yellow=code not in (CONFORMS, FAILS))

    def _reasons(self) -> str:
        """Name the options and arguments that kept rows from being run."""
        option = self.config.option
        reasons = [f"-k {option.keyword!r}"] if option.keyword else []
        reasons += [f"-m {option.markexpr!r}"] if option.markexpr else []
        reasons += ["--deselect"] if option.deselect else []
        reasons += ["the arguments name some cases"] if self.names_rows else []
        reasons += [f"--maxfail {option.maxfail}"] if option.maxfail else []
        reasons += [f"--{name}" for name in ("lf", "stepwise") if getattr(option, name, False)]
        return f" ({', '.join(reasons)})" if reasons else ""
