"""The end of a pytest session: the conclusion, the evidence and reports, and the sentences on the terminal."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from .. import report as reports
from ..adapter import resolve_claims
from ..certify import canary, planted
from ..certify.conclude import Conclusion, conclude
from ..certify.drawn import DrawnRun
from ..certify.evidence import Tampered, Target, Writer, header_of
from ..certify.folder import RESULTS
from ..explore.write_drawn import write_drawn
from ..isolate.backend import Isolation
from ..isolate.launch import Limits
from ..model import BAD, NOT_RUN, Adapter, Isolated, Result
from ..plan.rows import Plan, Row
from ..run.contain import contain
from ..run.row import result_without_call
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, UNTRUSTED
from ..system.terminal import count_noun, plain
from . import selection


@contextlib.contextmanager
def keep_warning_filters_out() -> Iterator[None]:
    """Run with default warning filters, since the repository's may turn a backend's warnings into errors.

    The warnings go on to pytest afterwards, in a form that is safe to print.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        with warnings.catch_warnings(record=True) as log:
            yield
        for warning in log:
            warnings.warn_explicit(plain(str(warning.message)), UserWarning, warning.filename, warning.lineno)


class SessionConclusion:
    """The results of a session and what they show."""

    def __init__(
        self, config: pytest.Config, plan: Plan, target: Target, adapter: Adapter, isolation: Isolation,
        wanted: list[Row], names_rows: bool,
    ) -> None:  # fmt: skip
        self.config, self.plan, self.target, self.wanted, self.names_rows = config, plan, target, wanted, names_rows
        self.adapter, self.isolation = adapter, isolation
        self.claims = resolve_claims(adapter, plan.suite.spec.operations)
        self.results: dict[str, Result] = {}
        self.seconds = 0.0
        self.rejected = False
        """True if a worker of xdist ran another backend or suite, so that nothing can be concluded."""
        self.caught: dict[str, int] = {}
        self.drawn: DrawnRun | None = None
        self.conclusion: Conclusion | None = None
        self.trouble: str | None = None
        self.trouble_code = INCOMPLETE

    def record(self, result: Result) -> None:
        """Keep a result; a failure is never replaced."""
        before = self.results.get(result.row)
        if before is None or set(before.verdicts.values()).isdisjoint(BAD):
            self.results[result.row] = result

    def conclude(self) -> int:
        """Run the planted backends, conclude, write what --conformance-out asks for, and return the exit code."""
        if self.rejected:
            return 0  # the session ends with a usage error
        target = self.target
        if any(row.id not in self.results for row in self.wanted):
            keyword = self.config.option.keyword or None
            self.target = Target(target.operations, target.documents, target.types, keyword, target.large)
        escaped: tuple[str, ...] = ()
        if self.results:
            with contain(), keep_warning_filters_out():
                self.caught = canary.count_failures(self.plan, self.isolation, Limits())
            escaped = planted.find_uncaught(planted.names(self.isolation), self.caught)
        if self.results:
            with contain(), keep_warning_filters_out():
                self._run_drawn_rows()
        self.conclusion = conclude(self.plan, self.results, self.claims, self.target, escaped=escaped)
        self.close()  # before anything is written: a backend that still runs could change it
        if self.config.option.conformance_out is not None:
            self._write(self.config.invocation_params.dir / self.config.option.conformance_out, self.conclusion)
        return self.conclusion.exit_code or (self.trouble_code if self.trouble else 0)

    def _run_drawn_rows(self) -> None:
        """Call the rows that --hunt asks for, unless only a part of the rows was run; those that fail join the plan."""
        target = self.target
        partial = target.operations or target.documents or target.types
        whole = not partial and all(row.id in self.results for row in self.wanted)
        calls = self.config.option.conformance_hunt or 0
        self.drawn = DrawnRun(self.plan, self.claims, calls if whole else 0)
        for row, result in self.drawn.run(self.adapter, self.isolation, write_drawn):
            if result is not None:
                self.plan = replace(self.plan, rows=(*self.plan.rows, row))
                self.results[row.id] = result

    def close(self) -> None:
        """End the backend's process, if it has one."""
        if isinstance(self.adapter, Isolated):
            self.adapter.close()

    def _write(self, out: Path, conclusion: Conclusion) -> None:
        """Write the evidence, then the reports, as `conformance run` does."""
        folders = dict(zip(("spec", "cases"), selection.folders(self.config), strict=True))
        backend = self.config.option.conformance_adapter
        header = header_of(self.plan.suite, self.adapter.identity, self.claims, self.target, backend, folders)
        header["isolation"] = self.isolation
        header |= {"drawn": self.drawn.drawn._asdict()} if self.drawn and self.drawn.drawn.calls else {}
        try:
            writer = Writer(out / RESULTS, header)
            for row in self.plan.rows:
                writer.row(self.results.get(row.id) or result_without_call(row, NOT_RUN))
            drawn = None if self.drawn is None else self.drawn.counts
            evidence = writer.close(self.seconds, canaries=self.caught, drawn=drawn)
            reports.write(out, self.plan, evidence, conclusion)
        except OSError as error:
            self.trouble = f"{error.filename or out}: {error.strerror or error}: nothing was written"
        except Tampered as tampered:
            self.trouble, self.trouble_code = str(tampered), UNTRUSTED

    def summarize(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the conclusion, and what is missing or was not written."""
        if self.conclusion is None:
            return

        def write(text: str, **markup: bool) -> None:
            terminalreporter.write_line(plain(text), **markup)

        identity = self.adapter.identity
        terminalreporter.write_sep("=", plain(f"reshape conformance of {identity.name} {identity.version}"))
        for sentence in self.conclusion.sentences:
            write(sentence)
        for result in self.results.values():
            if result.case is not None:
                write(f"a drawn row failed: {result.row}: {result.detail}", red=True)
                for line in result.case.rstrip().split("\n"):
                    write(f"  {line}")
        missing = sum(row.id not in self.results for row in self.wanted)
        if missing:
            rows = count_noun(len(self.wanted), "row")
            write(f"incomplete: {missing:,} of {rows} not run{self._reasons()}", yellow=True)
        if self.trouble:
            write(self.trouble, red=True)
        elif self.config.option.conformance_out is not None:
            write(f"report: {Path(self.config.option.conformance_out) / 'report.html'}")
        code, why = self.conclusion.exit_code, self.conclusion.why
        if not code and self.trouble:
            code, why = self.trouble_code, "not shown: what was asked for as evidence was not written"
        write(why, bold=True, green=code == CONFORMS, red=code == FAILS, yellow=code not in (CONFORMS, FAILS))

    def _reasons(self) -> str:
        """Name the options and arguments that kept rows from being run."""
        option = self.config.option
        reasons = [f"-k {option.keyword!r}"] if option.keyword else []
        reasons += [f"-m {option.markexpr!r}"] if option.markexpr else []
        reasons += ["--deselect"] if option.deselect else []
        reasons += ["the arguments name some cases"] if self.names_rows else []
        reasons += [f"--maxfail {option.maxfail}"] if option.maxfail else []
        reasons += ["--lf"] if getattr(option, "lf", False) else []
        return f" ({', '.join(reasons)})" if reasons else ""
