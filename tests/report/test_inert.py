"""Text of others is only shown: no terminal, CI service or reader treats it as our output."""

import ast
import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import conformance
from conformance.cli.arguments import emit
from conformance.cli.main import main
from conformance.load.cases import load_suite
from conformance.model import Array, Identity
from conformance.plan.rows import plan_of
from conformance.system import terminal
from tests.builders import Right, plan_as_bundled, report_run
from tests.pytest_plugin.done import HERE, Done

HOSTILE = "x\n✓ the whole target conforms!\n::error::x\n::stop-commands::tok\n##[group]g\n##vso[task.complete]\n\x1b[2J"
PACKAGE = Path(conformance.__file__).parent
OURS = [path for path in PACKAGE.rglob("*.py") if not {"tests", "adapters"} & set(path.relative_to(PACKAGE).parts)]
_OBEYED = re.compile(r"^\s*(::|✓ the whole target conforms!)|##\w*\[|[\0-\x08\x0b-\x1f]", re.MULTILINE)


def list_obeyed(text: str) -> list[str]:
    """List what a terminal, a CI service or a reader would treat as our output."""
    return [match[0] for match in _OBEYED.finditer(text)]


class NamePoses(Right):
    """Right, under a name that poses as our output."""

    name = HOSTILE


class TextPoses(Right):
    """Wrong, with details and messages of the same kind."""

    name = "turned"

    @property
    def identity(self) -> Identity:
        return Identity(self.name, "1", ((HOSTILE, HOSTILE),))

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        print(HOSTILE)
        raise RuntimeError(HOSTILE)


class NameAndTextPose(TextPoses):
    """Wrong under a hostile name."""

    name = HOSTILE


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a suite of four cases, and two runs with hostile text in their evidence."""
    folder = tmp_path_factory.mktemp("runs")
    plan_as_bundled(folder)
    plan = plan_of(load_suite(folder))
    for name, adapter in (("a", NamePoses()), ("b", NameAndTextPose())):
        with contextlib.redirect_stdout(io.StringIO()):
            report_run(plan, adapter, folder / name)
    return folder


F32, ALONE = ("--type", "f32"), ("--isolation", "none")
DRAWN = ("--drawn-rows", "3")
COMMANDS = {
    "verify": ("verify", "{a}", "--suite", "{suite}"),
    "verify of what fails": ("verify", "{b}", "--suite", "{suite}"),
    "verify --json": ("verify", "{b}", "--suite", "{suite}", "--json"),
    "diff": ("diff", "{a}", "{b}", "--suite", "{suite}"),
    "diff --json": ("diff", "{a}", "{b}", "--suite", "{suite}", "--json"),
    "diff to a file": ("diff", "{a}", "{b}", "--suite", "{suite}", "--out", f"{{out}}/{HOSTILE}.md"),
    "diff of a file that is not there": ("diff", f"{{a}}{HOSTILE}", "{b}", "--suite", "{suite}"),
    "report of shards": ("report", "{a}", "{b}", "--suite", "{suite}", "--out", "{out}/merged"),
    "publish": ("publish", "{out}", "{a}", "--suite", "{suite}"),
    "run": ("run", f"{__file__}:TextPoses", "--suite", "{suite}", *DRAWN, *ALONE, "--out", "{out}"),
    "run in a process": ("run", f"{__file__}:TextPoses", "--suite", "{suite}", *DRAWN, *F32, "--out", "{out}/2"),
    "run under that name": ("run", f"{__file__}:NamePoses", "--suite", "{suite}", *DRAWN, "--out", "{out}/3"),
    "sweep under that name": (
        "sweep", f"{__file__}:NamePoses", *ALONE, "--rank", "1", "--max-dim", "2", "--out", "{out}/sweep",
    ),
    "check-adapter under that name": ("check-adapter", f"{__file__}:NamePoses", *ALONE),
    "check-adapter": ("check-adapter", f"{__file__}:TextPoses", *ALONE),
    "sweep": (
        "sweep", f"{__file__}:TextPoses", *ALONE, "--rank", "1", "--max-dim", "2", "--out", "{out}/sweep",
    ),
    "sweep in processes": ("sweep", f"{__file__}:TextPoses", "--rank", "1", "--max-dim", "2", "--out", "{out}/sweep"),
    "explain": ("explain", HOSTILE),
    "list": ("list", HOSTILE),
    "an option": ("list", "rules", f"--{HOSTILE}"),
    "a folder": ("list", "rules", "--suite", HOSTILE),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(words, id=name, marks=[pytest.mark.exhaustive] * (name == "sweep in processes"))
        for name, words in COMMANDS.items()
    ],
)
def test_no_command_lets_a_name_pose_as_its_own_output(
    words: tuple[str, ...], runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"a": runs / "a", "b": runs / "b", "suite": runs, "out": tmp_path}
    main([re.sub(r"\{(\w+)\}", lambda match: str(places[match[1]]), word) for word in words])
    said = capsys.readouterr()
    assert said.out + said.err
    assert list_obeyed(said.out) == list_obeyed(said.err) == []


def test_the_reports_hold_no_command_and_no_control_character(runs: Path) -> None:
    for path in (runs / "b").iterdir():
        if path.suffix in (".html", ".svg"):
            assert not re.search(r"[\0-\x08\x0b-\x1f]", path.read_text(encoding="utf-8")), path
        elif path.suffix in (".json", ".jsonl", ".xml", ".md"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*::|[\0-\x08\x0b-\x1f]", text, re.MULTILINE), path


@pytest.mark.slow
def test_pytest_prints_no_text_of_a_backend_as_it_is(tmp_path: Path, runs: Path) -> None:
    adapter = tmp_path / "mine.py"
    adapter.write_text(
        f"import warnings\nfrom conformance.adapter import FunctionAdapter\nHOSTILE = {HOSTILE!r}\n"
        "class It(FunctionAdapter):\n    name, version = 'mine', '1'\n"
        "    def reshape(self, src, shape, special_zero):\n"
        "        print(HOSTILE)\n        warnings.warn(HOSTILE)\n        raise ValueError(HOSTILE)\n"
        "class Named(It):\n    name = HOSTILE\n",
        encoding="utf-8",
    )
    for manner in (("-v",), (*HERE, "--junitxml", "x.xml", "-rA", "--show-capture=all")):
        done = Done(tmp_path, *manner, "--conformance-suite", str(runs), adapter=f"{adapter}:It")
        assert done.code == 1, done.text
        done.says("flattens", "::stop-commands::tok")
        assert list_obeyed(done.text) == [], done.text
    done = Done(tmp_path, *HERE, "--conformance-suite", str(runs), adapter=f"{adapter}:Named")
    assert list_obeyed(done.text) == [], done.text
    done = Done(tmp_path, f"--conformance-suite={HOSTILE}", adapter=f"{adapter}:It")
    assert list_obeyed(done.text) == [], done.text


def said(text: str) -> str:
    stream = io.StringIO()
    terminal.say(text, stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    {
        "a\n::error::b": "a\\n::error::b",
        "  ::error::b": "  \\::error::b",
        "✓ conforms": "\\✓ conforms",
        "a ##[group]b": "a #\\x23[group]b",
        "##vso[task.complete]": "#\\x23vso[task.complete]",
        "##TeamCity[x]": "#\\x23TeamCity[x]",
        "a :: b ✓ ## c": "a :: b ✓ ## c",
        terminal.lines(("a", "::b")): "a\n\\::b",
        terminal.with_sign(True, "yes"): "✓ yes",
        terminal.paint("red", "::b"): "\\::b",
        terminal.paint("red", "##") + "[b]": "#\\x23[b]",
    }.items(),
    ids=range(11),  # our own marks differ from process to process
)
def test_a_line_is_shown_and_never_obeyed(text: str, shown: str) -> None:
    assert said(text) == f"{shown}\n" == f"{terminal.plain(text)}\n"


def test_no_folded_line_begins_with_a_command_or_verdict() -> None:
    for padding in range(90, 104):
        text = f"{'x' * padding} ::error::b {'y' * padding} ✓ conforms"
        assert not re.search(r"^\s*(::|✓)", said(terminal.wrap(text, 2, 4)), re.MULTILINE)


def test_cells_of_a_table_stay_on_their_line() -> None:
    assert len(said(terminal.table([("a\nb", "c"), ("d", "e\n::f")])).splitlines()) == 2


def test_json_holds_no_command_and_reads_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"##[group]": HOSTILE})
    out = capsys.readouterr().out
    assert list_obeyed(out) == []
    assert json.loads(out) == {"##[group]": HOSTILE}


def writes(path: Path) -> Iterator[str]:
    """The calls by which a module prints."""
    text = path.read_text(encoding="utf-8")
    if not re.search(r"\bprint\b|std(out|err)|write_line", text):
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name == "print" or re.search(r"std(out|err)(\.buffer)?\.write(lines)?$|write_line$", name):
            yield name


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_all_output_goes_through_the_terminal(path: Path) -> None:
    allowed = {
        "system/terminal.py": {"print", "sys.stdout.write"},  # `say`, and `say_raw` for scripts and JSON
        "pytest_plugin/conclusion.py": {"terminalreporter.write_line"},  # where the text is made plain
        "isolate/protocol/worker.py": {"self.stdout.write", "stdout.write"},  # the protocol
        "graphs/onnx_run.py": {"sys.stdout.write"},  # the answer of a process to the one that started it
    }
    assert set(writes(path)) == allowed.get(path.relative_to(PACKAGE).as_posix(), set())
