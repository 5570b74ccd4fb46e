"""The templates in other languages build without a warning and conform; with a fault planted they do not."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from conformance.isolate.backend import use_backend
from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol.messages import write_graph_record
from conformance.load.cases import load_suite
from conformance.model import Result
from conformance.plan.rows import Plan, Row, plan_of
from conformance.run.row import run_rows
from conformance.selfcheck.mutants import choose_rows_to_run
from conformance.system.files import find_adapters_folder

from ..builders import Cli
from ..isolate.calls import reshape
from ..processes import works
from .planted_programs import JS_ANSWER, PLANTED, PRINTS, PlantedFault

TOOLS = {"c": "cc", "cpp": "c++", "javascript": "node", "rust": "cargo"}
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
SANITIZERS = ["-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
QUICK = {"c": ("-O0",), "cpp": ("-O0",), "rust": ("--config", "profile.release.opt-level=0")}
LANGUAGES = [
    pytest.param(language, marks=pytest.mark.skipif(not works(tool), reason=f"there is no {tool} here"), id=language)
    for language, tool in TOOLS.items()
]

OFTEN_C = [
    pytest.param(*each.values, marks=[*each.marks, *[pytest.mark.slow] * (each.id != "c")], id=each.id)
    for each in LANGUAGES
]
"""All languages; all but C are slow."""


def with_rows(*languages: str) -> list[Any]:
    """Return languages and arguments for `run`, to run all rows; CI tries C, and runs a part of the rows."""
    every = [each for each in LANGUAGES if each.id in languages]
    part = ["--type=f16", "--operation=DynamicReshape-1"]
    return [
        *(pytest.param(each.id, part, marks=each.marks, id=f"{each.id}-part") for each in every if each.id == "c"),
        *(pytest.param(each.id, [], marks=[*each.marks, pytest.mark.exhaustive], id=each.id) for each in every),
    ]


(JS_WRITES,) = (each for each in PLANTED if (each.language, each.fault) == ("javascript", "writes into src"))


def few_often(planted: Iterable[PlantedFault], often: Callable[[PlantedFault], bool]) -> list[Any]:
    """Return programs as parameters; CI builds few of them, because that takes long and the others are their likes."""
    rest = [pytest.mark.slow, pytest.mark.exhaustive]
    return [
        pytest.param(each, marks=[] if often(each) else rest, id=f"{each.language} {each.fault}") for each in planted
    ]


HELLO = {"id": 1, "do": "hello", "protocol": "reshape-conformance/1", "shared_memory": None}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(load_suite())


Builds = dict[tuple[object, ...], str]


class Workshop:
    """A folder in which templates are written and built, by the commands that `new-adapter` prints.

    A program that was built with the same flags and the same planted fault is not built again.
    """

    def __init__(self, cli: Cli, folder: Path, builds: Builds) -> None:
        self.cli, self.folder, self.builds = cli, folder, builds

    def write(self, language: str, folder: Path) -> tuple[Path, list[str]]:
        """Return the path of a new adapter, and the commands that come next."""
        if not works(TOOLS[language]):
            pytest.skip(f"there is no {TOOLS[language]} here")
        ending = {"c": ".c", "cpp": ".cpp", "javascript": ".mjs", "rust": ""}[language]
        out = folder / f"mine{ending}"
        return out, self.cli("new-adapter", "mine", "--lang", language, "--out", str(out), "--json").data["next"]

    def build(self, language: str, *flags: str, planted: PlantedFault | None = None) -> str:
        """Return the backend; `flags` are more arguments of the compiler, by default of a planted fault to be quick."""
        flags = flags or (QUICK.get(language, ()) if planted else ())
        key = language, flags, planted
        if key not in self.builds:
            folder = Path(mkdtemp(dir=self.folder))
            out, (*compile_, _, run_) = self.write(language, folder)
            if planted:
                planted.plant(out / "src" / "main.rs" if language == "rust" else out)
            for command in compile_:
                subprocess.run([*shlex.split(command), *flags], check=True, capture_output=True)
            self.builds[key] = shlex.split(run_)[-1]
        return self.builds[key]

    def build_strictly(self, language: str) -> str:
        """Return the backend, built quickly, and without a warning."""
        return self.build(language, *QUICK.get(language, ()), *(STRICT if language in ("c", "cpp") else ()))


@pytest.fixture(scope="module")
def builds() -> Builds:
    return {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workshop")


@pytest.fixture
def workshop(cli: Cli, folder: Path, builds: Builds) -> Workshop:
    return Workshop(cli, folder, builds)


def chosen(plan: Plan, rule: str | None = None, most: int = 100_000) -> list[Row]:
    rows = [row for row in plan.rows if not row.case.large and rule in (None, row.case.rule)]
    return rows[:: max(1, len(rows) // most)]


def results(backend: str, rows: list[Row], seconds: float = 60.0) -> Generator[Result, None, None]:
    with use_backend(backend, "worker", ProcessLimits(seconds=seconds)) as adapter:
        yield from run_rows(rows, adapter)


def is_bad(result: Result) -> bool:
    return not {"fail", "error", "not run"}.isdisjoint(result.verdicts.values())


def is_caught(plan: Plan, backend: str, rule: str) -> bool:
    """Ask whether a row of the rule is bad. Another row goes first, because the first call may include a start."""
    rows = [plan.rows[0], *chosen(plan, rule, 60)]
    with closing(results(backend, rows, 0.5)) as found:
        return any(map(is_bad, islice(found, 1, None)))


@pytest.mark.slow
@pytest.mark.parametrize("language", OFTEN_C)
def test_a_template_is_sound_and_conforms_in_all_that_it_claims(plan: Plan, workshop: Workshop, language: str) -> None:
    """A part of the rows, because plain JavaScript takes seconds for all; a slow test runs the others."""
    backend = workshop.build_strictly(language)
    assert "the adapter is sound" in workshop.cli("check-adapter", backend).expect(0).out
    rows = choose_rows_to_run(chosen(plan, None, 120))
    found = list(results(backend, rows))
    assert not [result for result in found if is_bad(result)][:3]
    for row, result in zip(rows, found, strict=True):
        left_out = {facet.partition(":")[0] for facet in row.facets} & {"declared", "form", "threads"}
        assert bool(left_out) == ("not claimed" in result.verdicts.values()), row.id


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_reports")
@pytest.mark.parametrize(("language", "part"), with_rows(*TOOLS))
def test_a_run_of_a_template_exits_with_0(workshop: Workshop, tmp_path: Path, language: str, part: list[str]) -> None:
    workshop.cli("run", workshop.build(language), *part, "--out", str(tmp_path / "report")).expect(0)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_reports")
@pytest.mark.parametrize(("language", "part"), with_rows("c", "cpp"))
def test_a_run_under_the_sanitizers_finds_nothing(
    workshop: Workshop, tmp_path: Path, language: str, part: list[str]
) -> None:
    """The sanitizer reserves terabytes of addresses, so --memory is high."""
    backend = workshop.build(language, *SANITIZERS)
    limits = ["--memory", "60000000", "--timeout", "60"]
    workshop.cli("run", backend, *part, *limits, "--out", str(tmp_path / "report")).expect(0)


@pytest.mark.slow
@pytest.mark.parametrize("planted", few_often(PLANTED, lambda planted: planted.language == "c" or planted == JS_WRITES))
def test_a_planted_fault_is_caught_by_a_case_of_its_rule(plan: Plan, workshop: Workshop, planted: PlantedFault) -> None:
    backend = workshop.build(planted.language, planted=planted)
    assert is_caught(plan, backend, planted.rule), f"no case of {planted.rule} notices it"


@pytest.mark.parametrize("planted", [*PLANTED, *PRINTS], ids=lambda planted: f"{planted.language} {planted.fault}")
def test_a_planted_fault_finds_its_lines_in_the_template(tmp_path: Path, planted: PlantedFault) -> None:
    (template,) = (find_adapters_folder() / planted.language).rglob(
        "main.rs" if planted.language == "rust" else "reshape.*"
    )
    source = tmp_path / template.name
    source.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    planted.plant(source)
    assert source.read_text(encoding="utf-8") != template.read_text(encoding="utf-8")


def test_a_planted_fault_fails_no_case_of_another_rule(plan: Plan, workshop: Workshop) -> None:
    (quiets,) = [planted for planted in PLANTED if planted.fault == "makes signalling NaNs quiet"]
    assert not is_caught(plan, workshop.build("c", planted=quiets), "one-infer")


@pytest.mark.parametrize("planted", few_often(PRINTS, lambda planted: planted.language not in ("cpp", "rust")))
def test_a_library_may_print(plan: Plan, workshop: Workshop, planted: PlantedFault) -> None:
    found = list(results(workshop.build(planted.language, planted=planted), chosen(plan, "zero-copies", 5)))
    assert found
    assert not any(map(is_bad, found))


def test_javascript_rejects_by_no_class_of_bugs(workshop: Workshop) -> None:
    by_any = PlantedFault("javascript", "", "", (("REJECTIONS = [Rejected]", "REJECTIONS = [TypeError]"),))
    backend = workshop.build("javascript", planted=by_any)
    workshop.cli("check-adapter", backend).expect(3, err="REJECTIONS names a class by which bugs speak")


@pytest.mark.slow
@pytest.mark.parametrize(("exception", "kind"), [('std::length_error("no")', "error"), ("std::bad_alloc()", "crash")])
def test_an_exception_that_cpp_does_not_expect(plan: Plan, workshop: Workshop, exception: str, kind: str) -> None:
    """One that says that there is no memory is the library's."""
    rejects = 'Rejected("src and dst do not have equally many elements")'
    throws = PlantedFault("cpp", exception, "", ((rejects, exception),))
    found = {
        result.outcome.kind for result in results(workshop.build("cpp", planted=throws), chosen(plan, "same-volume", 5))
    }
    assert found & {"error", "crash"} == {kind}


def test_javascript_may_be_async_and_names_its_refusals(plan: Plan, workshop: Workshop) -> None:
    later = PlantedFault(
        "javascript", "answers later", "", (
            ("function reshape(", "async function reshape("),
            (JS_ANSWER, f"  await new Promise(setImmediate);\n{JS_ANSWER}"),
            ("class Rejected extends Error", "class Rejected extends RangeError"),
            ("REJECTIONS = [Rejected]", "REJECTIONS = [RangeError]"),
            ("copyElements(src) };", "new Uint16Array(new Uint8Array(copyElements(src)).buffer) };"),
        ),
    )  # fmt: skip
    rows = [*chosen(plan, "zero-copies", 5), *chosen(plan, "same-volume", 5)]
    found = list(results(workshop.build("javascript", planted=later), rows))
    assert {result.outcome.kind for result in found} == {"tensor", "rejected"}
    assert not any(map(is_bad, found))


SRC = {"type": "f32", "dims": [2], "strides": [4], "offset": 0, "bytes": 8}
GRAPH = write_graph_record(reshape((2,), (2,)))
COMPILE = {"id": 2, "do": "compile", "program": 5, "graph": GRAPH}
RUN = {"id": 3, "do": "run", "program": 5, "may_overwrite": False}


def line(*requests: dict[str, object]) -> bytes:
    return b"".join(json.dumps(request).encode() + b"\n" for request in requests)


def run_of(**changes: object) -> bytes:
    return line(HELLO, COMPILE, {**RUN, "tensors": [{**SRC, **changes}]}) + bytes(8)


MALFORMED = {
    "no JSON": b"reshape, please\n",
    "a text without end": b'{"id":1,"do":"hel\n',
    "an object without end": b'{"id":1,"do":"hello"\n',
    "a comma too few": b'{"id":1 "do":"hello"}\n',
    "no UTF-8": b'\xff\xfe{"id":1}\n',
    "more after the object": line(HELLO)[:-1] + b" [\n",
    "the input ends inside a tensor": run_of()[:-3],
    "deep nesting": b"[" * 100_000 + b"\n",
}
BEYOND = {
    "strides that leave the memory": run_of(strides=[400]),
    "negative strides": run_of(strides=[-4]),
    "strides of 2^62": run_of(strides=[1 << 62]),
    "an offset past the memory": run_of(offset=1 << 40),
    "a negative size": run_of(bytes=-8),
    "a negative length": run_of(dims=[-2]),
    "an enormous length": run_of(dims=[1 << 62], strides=[1 << 62]),
    "more dims than strides": run_of(dims=[1, 2]),
}


def talk(backend: str, sent: bytes) -> subprocess.CompletedProcess[bytes]:
    command = shlex.split(backend.removeprefix("cmd:"))
    return subprocess.run(command, input=sent, capture_output=True, check=False, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "flags"),
    [
        *(pytest.param(each.id, (), marks=each.marks, id=each.id) for each in LANGUAGES),
        pytest.param("c", SANITIZERS, id="c-sanitized"),
        pytest.param("cpp", SANITIZERS, id="cpp-sanitized", marks=pytest.mark.exhaustive),
    ],
)
def test_a_malformed_frame_ends_the_program_with_one_line(
    workshop: Workshop, language: str, flags: Sequence[str]
) -> None:
    """With the sanitizers, it also touches no other memory."""
    backend = workshop.build(language, *flags) if flags else workshop.build_strictly(language)
    frames = {**MALFORMED, **({} if language == "javascript" else BEYOND)}  # a Buffer has bounds
    for what, sent in frames.items():
        done = talk(backend, sent)
        assert done.returncode == 65, f"{what}: {done}"
        assert done.stderr.startswith(b"adapter: "), f"{what}: {done}"
        assert done.stderr.count(b"\n") == 1, f"{what}: {done}"
    done = talk(backend, run_of())
    assert done.returncode == 0, done
    assert done.stdout.endswith(bytes(8))


@pytest.mark.parametrize("tool", ["fmt", "clippy"])
def test_the_crate_is_idiomatic(workshop: Workshop, tmp_path: Path, tool: str) -> None:
    if not works("cargo") or not works(f"cargo-{tool}"):
        pytest.skip(f"there is no cargo-{tool} here")
    crate, _ = workshop.write("rust", tmp_path)
    more = ["--check"] if tool == "fmt" else ["--offline", "--", "-D", "warnings"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target")}
    done = subprocess.run(["cargo", tool, *more], cwd=crate, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_template_is_short_and_marks_what_to_change() -> None:
    for language in TOOLS:
        files = [path for path in (find_adapters_folder() / language).rglob("*") if path.is_file()]
        texts = [path.read_text(encoding="utf-8") for path in files if path.suffix != ".lock"]
        assert files
        assert sum(text.count("CHANGE") for text in texts) in (3, 4), language
        assert sum(text.count('"template"') for text in texts) == 1, language
        assert max(len(text.splitlines()) for text in texts) <= 400, language
