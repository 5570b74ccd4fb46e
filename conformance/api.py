"""Three functions for programs and notebooks. They say what the commands `meaning` and `run` say, in the same words."""

from __future__ import annotations

import gc
import inspect
import operator
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np

from .adapter import is_importing
from .cli.arguments import Stop, load_spec_of, pick
from .cli.commands import parser_of
from .cli.facts import describe_call_meaning
from .cli.run import RunFolder, conclude, request_of, write_reports
from .cli.run_summary import data_of
from .cli.typed_values import read_entries, read_named_lengths, read_src_lengths
from .evidence.results import name_with_version
from .meaning.contract import Contract, contracts
from .model import BAD, Call, Malformed, Outcome, Rejected, Spec, Unsupported
from .model.types import WIDTH, name_of
from .plan.memory import TensorSpec
from .run.call import ARRAYS, find_big_endian_error, make_exception_outcome, read_message
from .run.diagnose import ExpectedAnswer
from .run.judge import judge
from .runner.run_suite import run_suite
from .system.exit_codes import USAGE, CommandError
from .system.text import as_text, format_call
from .verdict.failure_kinds import group_failures

__all__ = ["CallMeaning", "Clause", "Failure", "Run", "WrongAnswer", "check", "meaning", "run"]
Length = int | str
"""A length, or a name for one that is not known."""
File = str | PathLike[str]
_ONE_RUN = RLock()
"""Held by the thread that runs: a run redirects the standard output of the whole process."""


@dataclass(frozen=True)
class Clause:
    """A rule that decides what a call means, and where the document says it."""

    rule: str
    sentence: str
    treatment: str
    """How the document treats the rule: `stated`, `our ruling`, …"""
    at: tuple[tuple[int, str], ...]
    """The lines of the document, each with its first words."""


@dataclass(frozen=True)
class CallMeaning:
    """The meaning of a call in one document."""

    kind: str
    """`legal`, `illegal` or `unspecified`; `conditional` if it depends on a named length; `not expressible`."""
    dst: tuple[Length | None, ...] | None
    """The dims of the answer; None for what no rule decides."""
    clauses: tuple[Clause, ...]
    """The rules that a call breaks, or that leave it unspecified; those that a legal call breaks at some lengths."""
    reason: str | None
    """For which lengths the call is legal, or why the operation has no such call."""


def meaning(
    src: Sequence[Length], shape: Sequence[Length], special_zero: bool = False, *, document: str | None = None
) -> dict[str, CallMeaning]:
    """Say what a call means in each document, or in one.

    A length may be a name, such as `meaning(("n", 3), (2, -1))`; it stands for every length from 1.
    """
    with _value_errors():
        lengths: tuple[Any, ...] = read_src_lengths("src", _text("src", src))
        entries: tuple[Any, ...] = read_named_lengths("shape", _text("shape", shape))
        call = Call(lengths, entries, _read_flag("special_zero", special_zero))
        spec, compiled = _load_contracts()
        facts = {
            name: describe_call_meaning(spec, name, call, compiled[name]) for name in _choose_documents(spec, document)
        }
    return {
        name: CallMeaning(
            each["kind"],
            None if each["dst"] is None else tuple(each["dst"]),
            tuple(
                Clause(
                    because["rule"], because["sentence"], because["treatment"],
                    tuple((at["line"], at["words"]) for at in because["at"]),
                )
                for because in each["because"]
            ),
            each.get("reason"),
        )
        for name, each in facts.items()
    }  # fmt: skip


class WrongAnswer(AssertionError):
    """The answer to a call is wrong in at least one document."""

    def __init__(self, call: str, wrong: Mapping[str, str]) -> None:
        lines = [f"{', '.join(d for d in wrong if wrong[d] == what)}: {what}" for what in dict.fromkeys(wrong.values())]
        super().__init__("\n".join([call, *lines]))
        self.wrong = dict(wrong)
        """What is wrong, by document."""


def check(
    answer: Any, src: Any, shape: Sequence[int], special_zero: bool = False, *, document: str | None = None
) -> dict[str, str]:
    """Compare an answer with what each document says, or one; WrongAnswer if it is wrong in one of them.

    `src` and `answer` are arrays. Type, dims and bits of the answer are compared. If the call was rejected, `answer`
    is the exception. The result has a verdict for each document: `pass`, or `observed` if the call is unspecified.
    The element type of `src` makes no call illegal here.
    """
    given = _read_array(src)
    with _value_errors():
        if (type_ := name_of(given.dtype)) not in WIDTH:
            raise Stop(f"src is an array of {given.dtype}, which is no element type; known: {', '.join(WIDTH)}")
        if isinstance(answer, type) and issubclass(answer, BaseException):
            raise Stop(f"the answer is a class; give an instance of the exception {answer.__name__}")
        is_error = isinstance(answer, BaseException) and not isinstance(answer, Exception)
        if is_error or isinstance(answer, AttributeError | ImportError | NameError | SyntaxError | Unsupported):
            raise Stop(f"the answer is {answer!r:.60}, by which no library rejects a call")
        if type(answer) in (TypeError, AssertionError):
            how = "if your library rejects the call by it, give conformance.Rejected('run', str(error))"
            raise Stop(f"the answer is {answer!r:.60}, by which bugs speak too; {how}")
        if isinstance(answer, ARRAYS) and (error := find_big_endian_error(answer.dtype)):
            raise Stop(f"the answer is {error}")
        spec, compiled = _load_contracts()
        call = Call(given.shape, read_entries("shape", _text("shape", shape)), _read_flag("special_zero", special_zero))
        documents = _choose_documents(spec, document)
    if answer is None:
        raise WrongAnswer(format_call(*call[:3]), dict.fromkeys(documents, "the answer is None; is a return missing?"))
    if isinstance(answer, MemoryError | Rejected):
        outcome = make_exception_outcome(answer)
    elif isinstance(answer, BaseException):
        outcome = Outcome("rejected", stage="run", message=read_message(as_text(answer)))
    else:
        array = _read_array(answer)
        outcome = Outcome("tensor", name_of(array.dtype), array.shape, array.tobytes())
    expected = ExpectedAnswer(TensorSpec(type_, given.shape), given.tobytes())
    judged = {name: judge(outcome, compiled[name].meaning(*call), expected, ()) for name in documents}
    wrong = {name: each.diagnosis.text for name, each in judged.items() if each.verdict in BAD and each.diagnosis}
    if wrong:
        raise WrongAnswer(format_call(*call[:3]), wrong)
    return {name: each.verdict for name, each in judged.items()}


@dataclass(frozen=True)
class Failure:
    """A row that fails in the target of a run."""

    row: str
    verdicts: Mapping[str, str]
    """By document."""
    diagnosis: str | None
    detail: str | None
    cause: str | None
    """The known fault that explains it, as adapters/faults.yaml names it."""
    repeat: str | None
    """The command that repeats it; None for a row that went right alone."""


class Run:
    """The result of a run."""

    def __init__(self, data: Mapping[str, Any], causes: Mapping[str, int]) -> None:
        self._data = data
        self.exit_code: int = data["exit_code"]
        """That of `conformance run`; 0 only if the whole target conforms."""
        self.label: str = data["label"]
        """The name of the whole result: the worst that failed, or how far the target conforms."""
        self.why: str = data["why"]
        self.sentences: tuple[str, ...] = tuple(data["sentences"])
        """What the run shows, for each document."""
        self.verdicts: Mapping[str, int] = data["verdicts"]
        """The number of tests of each verdict; a test is a row judged in a document."""
        self.causes = causes
        """The number of tests that fail by each known fault, or by what went wrong if none explains it."""
        self.failures = tuple(
            Failure(
                each["row"], each["verdicts"], each["diagnosis"], each["detail"],
                each["cause"] and each["cause"]["id"], each["repeat"],
            )
            for each in data["failures"]
        )  # fmt: skip

    @property
    def conforms(self) -> bool:
        return self.exit_code == 0

    def to_json(self) -> dict[str, Any]:
        """Return what `conformance run --json` prints."""
        return dict(self._data)

    def __repr__(self) -> str:
        causes = [f"  {title} · {tests:,} tests" for title, tests in self.causes.items()]
        return "\n".join(
            [f"{self._name}: {self.label}", *causes, *self.sentences, f"exit {self.exit_code}: {self.why}"]
        )

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{escape(title)}</td><td>{tests:,}</td></tr>" for title, tests in self.causes.items())
        table = f"<table><tr><th>fails</th><th>tests</th></tr>{rows}</table>" if rows else ""
        said = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences)
        return (
            f"<p><b>{escape(self._name)}: {escape(self.label)}</b></p>{table}<ul>{said}</ul><p>{escape(self.why)}</p>"
        )

    @property
    def _name(self) -> str:
        return name_with_version(self._data["backend"])


def run(  # noqa: PLR0913 - each is an option of the command
    adapter: str | type, *, select: str | None = None, quick: bool = False, operations: Sequence[str] = (),
    documents: Sequence[str] = (), types: Sequence[str] = (), drawn_rows: int | None = None, jobs: int = 1,
    timeout: float | None = None, isolation: Literal["worker", "row", "none"] | None = None,
    waivers: File | Sequence[File] | None = None, suite: File | None = None, out: File | None = None,
) -> Run:  # fmt: skip
    """Run the suite as `conformance run` does. Each keyword is the option of that name, but `select` is -k.

    `operations`, `documents` and `types` are --operation, --document and --type, each with all its values.
    `adapter` is a backend as the command takes it, such as `mine.py:Mine`, or a class from a file or a package.
    Nothing is written without `out`. Raises CannotStart if the backend cannot start.
    """
    options: dict[str, Any] = {
        "operation": operations, "document": documents, "type": types, "drawn-rows": drawn_rows, "jobs": jobs,
        "timeout": timeout, "isolation": isolation, "waivers": waivers, "suite": suite, "out": out,
    }  # fmt: skip
    words = [] if select is None else [f"-k{select}"]
    for name, value in options.items():
        several = [] if value is None else [value] if _is_single(value) else value
        words += [f"--{name}={each}" for each in several]
    with _value_errors(), _ONE_RUN, ExitStack() as locks:
        words += ["--quick"] * _read_flag("quick", quick)
        if is_importing():  # the run would import the file again, which would begin a run, and so on
            raise Stop(
                "the adapter's file calls conformance.run while it is imported; call it below "
                "`if __name__ == '__main__':`"
            )
        args = parser_of("run").parse_args([*words, "--", _backend_of(adapter)])
        request = request_of(args)
        folder = RunFolder(args.out, None, locks)
        try:
            evidence = run_suite(request, folder.lock_and_clear if folder.named else None)
        finally:
            gc.unfreeze()  # a run freezes what is there; the caller's program goes on
        judged = conclude(request.plan, evidence, folder.path)
        if folder.path is not None:
            write_reports(folder.path, judged)
    causes: Counter[str] = Counter()
    for kind in group_failures(judged.plan, evidence, judged.conclusion).kinds:
        causes[kind.title] += kind.tests
    return Run(data_of(judged, folder.path), causes)


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _value_errors() -> Iterator[None]:
    """Raise ValueError for what the command calls a mistake."""
    try:
        yield
    except (CommandError, Malformed) as mistake:
        if getattr(mistake, "exit_code", USAGE) != USAGE:
            raise
        raise ValueError(str(mistake)) from None


@cache
def _load_contracts() -> tuple[Spec, Mapping[str, Contract]]:
    spec = load_spec_of(None)
    return spec, contracts(spec)


def _choose_documents(spec: Spec, document: str | None) -> list[str]:
    return list(spec.documents) if document is None else [pick("document", str(document), spec.documents)]


def _is_single(value: Any) -> bool:
    return isinstance(value, str) or not isinstance(value, Iterable) or getattr(value, "ndim", None) == 0


def _text(name: str, lengths: Any) -> str:
    if isinstance(lengths, str):
        return lengths
    if isinstance(lengths, Mapping | Set | bytes | bytearray):
        raise Stop(f"{name} is {str(lengths)[:60]}, which is no list of lengths; write a list")
    entries = [*map(_read_scalar, [lengths] if _is_single(lengths) else lengths)]
    for each in entries:
        if not _is_single(each):
            raise Stop(f"{name} holds {str(each)[:60]!r}, and a length is one number; give dims, such as x.shape")
        read = read_entries if isinstance(each, float | np.floating) else read_named_lengths  # nan and inf are no names
        if len(read(name, str(each))) != 1:
            raise Stop(f"{name} holds {str(each)[:60]!r}, and a length is one number")
    return ",".join(map(str, entries))


def _read_scalar(value: Any) -> Any:
    """Return the number that a tensor without dims holds, which its text does not have to show; else the value."""
    if getattr(value, "ndim", None) == 0:
        with suppress(TypeError):
            return operator.index(value)
    return value


def _read_flag(name: str, value: object) -> bool:
    if isinstance(value, str) or str(value) not in ("True", "False", "1", "0"):  # no text, which the command reads
        raise Stop(f"{name} {str(value)[:60]!r} is neither true nor false; write {name}=True")
    return str(value) in ("True", "1")


def _read_array(value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return an array with the elements of a value, in little-endian byte order."""
    if np.ma.is_masked(value):
        raise ValueError("an array has masked elements, which say nothing of its bits; give its data")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{value!r:.60} is no array; do its rows have different lengths?") from error
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _backend_of(adapter: str | type) -> str:
    if isinstance(adapter, str):
        return adapter
    if not isinstance(adapter, type):
        raise Stop(f"{adapter!r:.60} is no class; give the adapter's class, or text such as 'mine.py:Mine'")
    found: Any = sys.modules.get(adapter.__module__)
    for name in adapter.__qualname__.split("."):
        found = getattr(found, name, None)
    if found is not adapter and found is not None:
        raise Stop(f"{adapter.__qualname__} of {adapter.__module__} is another class than the one that is given")
    if "." in adapter.__module__:  # a module of a package may import its neighbours
        return f"{adapter.__module__}:{adapter.__qualname__}"
    try:
        file = Path(inspect.getfile(adapter))
    except (OSError, TypeError):
        file = Path()
    if not file.is_file():
        how = f"write it to one, in a notebook by %%writefile mine.py, and give 'mine.py:{adapter.__name__}'"
        raise Stop(f"{adapter.__name__} is defined in no file, from which a backend is imported; {how}")
    return f"{file}:{adapter.__qualname__}"
