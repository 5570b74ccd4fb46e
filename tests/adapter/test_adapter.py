"""Whatever a backend is or does, it gets one clear message or one clear verdict, and the run goes on."""

import os
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import digest_of_adapter, find_registered_backends, load_adapter
from conformance.evidence.results import read
from conformance.model import Crashed, Outcome
from conformance.plan.rows import Plan
from conformance.run.row import run_rows
from conformance.system.files import sha256_of

from .. import miniatures
from ..builders import Command, mini
from ..isolate.remote_backends import verdicts
from .conftest import HEAD

# ── what cannot be started ────────────────────────────────────────────────────────────────────────
MISNAMED = {
    "nmupy": "did you mean 'numpy'",
    "": "unknown backend ''",
    "no such": "see `conformance list backends`, or give package.module:Class, path/to/file.py:Class or cmd:PROGRAM",
    "LICENSE": "if it is a program, write cmd:./LICENSE",
    "no.such.module:It": "No module named 'no'",
    "tests.miniatures:Plian": "has no class 'Plian'; its classes are",
    "tests.miniatures:ALL": "'ALL' is no class",
    "tests.miniatures:": "has no class ''",
    ":It": "names no module and no file",
    "./tests:It": "names no module and no file; write package.module:Class or path/file.py:Class",
    "no/such/file.py:It": "no such file; give the path",
    "mine.py": "name the file and the class: mine.py:Class",
    "tests.miniatures:Plain@moon": "has no choice of device",
    "planted:zero-flag-ingored": "did you mean 'zero-flag-ignored'",
}


@pytest.mark.slow
def test_an_adapter_imports_the_files_beside_it(command: Command, tmp_path: Path, backend: Any) -> None:
    """They are found last: none of them hides a module of the suite or of a library."""
    (tmp_path / "helper.py").write_text("def fold(array, shape): return array.reshape(shape).copy()\n")
    for name in ("numpy", "yaml", "conformance", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hidden')\n")
    it = backend(
        "import helper, yaml\nclass It(Right):\n"
        "    def reshape(self, src, shape, special_zero): return helper.fold(src, shape)\n"
    )
    for isolation in ("worker", "none"):
        command.run(it, "--isolation", isolation).expect(1, out="right 1: ")


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("within.mine:Mine", "the module 'within.mine' is not on Python's path, but there is a file; "
         "write ./within/mine.py:Mine"),
        ("elsewhere.mine:Mine", "named 'elsewhere'; it is not on Python's path; install it, or name its file"),
        ("torc_mine.py:Mine", "No module named 'torc'; install what it needs"),
    ],
)  # fmt: skip
def test_a_module_that_is_not_on_the_path(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, words: str
) -> None:
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "mine.py").write_text("")
    (tmp_path / "torc_mine.py").write_text("import torc")
    monkeypatch.chdir(tmp_path)
    assert words in command.run(backend).expect(3).err


def test_a_package_of_a_backend_is_imported_only_where_it_runs(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code could end the command with 0, and no row would have been called."""
    (tmp_path / "packed").mkdir()
    note = "import os\nwith open(__file__ + '.pids', 'a') as file: print(os.getpid(), file=file)\n"
    (tmp_path / "packed" / "__init__.py").write_text(note)
    (tmp_path / "packed" / "mine.py").write_text(HEAD)
    monkeypatch.syspath_prepend(tmp_path)
    command.run("packed.mine:Right", "--isolation", "worker", "-k", "flattens")
    digest = read(command.out / "results.jsonl").header["backend"]["digest"]
    assert digest == sha256_of(tmp_path / "packed" / "mine.py")
    assert str(os.getpid()) not in (tmp_path / "packed" / "__init__.py.pids").read_text().split()


@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_a_package_that_fails_is_one_line(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("raise RuntimeError('early')\n")
    (tmp_path / "broken" / "mine.py").write_text(HEAD)
    monkeypatch.syspath_prepend(tmp_path)
    said = command.run("broken.mine:Right", "--isolation", isolation).expect(3, lines=1)
    assert said.err.endswith("broken.mine:Right: cannot be started: RuntimeError: early\n")


@pytest.mark.slow
def test_an_installed_package_registers_a_backend(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs.py").write_text(HEAD)
    (tmp_path / "theirs-7.dist-info").mkdir()
    (tmp_path / "theirs-7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 7\n")
    (tmp_path / "theirs-7.dist-info" / "entry_points.txt").write_text(
        "[reshape_conformance.backends]\ntheirs-fast = theirs:Right [fast]\nnumpy = theirs:Right\nvague = theirs\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # for the worker
    find_registered_backends.cache_clear()
    assert "right 1: " in command.run("theirs-fast", "--isolation", "worker").expect(1).out
    assert "did you mean 'theirs-fast'?" in command.run("theirs-fst").expect(3).err
    listed = [line.split() for line in command("list", "backends").out.splitlines()]
    assert ["theirs-fast", "installed", "theirs:Right", "registered"] in listed
    assert ["numpy", "installed", "theirs:Right", "registered"] not in listed
    assert "theirs has no class ''; its classes are Right" in command.run("vague").expect(3).err
    assert digest_of_adapter("theirs-fast") == sha256_of(tmp_path / "theirs.py")
    find_registered_backends.cache_clear()


def test_adapters_in_one_process_import_the_files_beside_them(tmp_path: Path) -> None:
    for folder, version in (("one", "1"), ("two", "2"), ("one", "now 3")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "mine.py").write_text(f"from helper_beside import VERSION{HEAD}Right.version = VERSION\n")
        (tmp_path / folder / "helper_beside.py").write_text(f"VERSION = '{version}'\n")
        assert load_adapter(f"{tmp_path / folder / 'mine.py'}:Right").identity.version == version


@pytest.mark.parametrize("name", MISNAMED)
def test_a_backend_that_is_not_there_ends_with_3_and_one_line(command: Command, name: str) -> None:
    assert command.run(name).expect(3, err=MISNAMED[name], lines=1).out == ""
    assert not (command.out / "results.jsonl").exists()


RIGHT_BUT = {
    # name: (a line of a class that is right otherwise, words of the message)
    "construction raises": ("def __init__(self): raise OSError('no device')", "OSError: no device"),
    "construction wants more": ("def __init__(self, device): pass", "TypeError"),
    "no name": ("name = ''", "a FunctionAdapter `name` and `version`: both text, and a name not"),
    "a name that is a number": ("name = 3", "give Identity(name, version)"),
    "no version": ("version = None", "give Identity(name, version)"),
    "an identity that is text": ("identity = 'x'", "give Identity(name, version)"),
    "a detail that is no pair": ("identity = Identity('x', '1', ('cpu',))", "give pairs of text"),
    "a detail that is a number": ("identity = Identity('x', '1', (('cpu', 3),))", "give pairs of text"),
    "claims that are a list": ("claims = ['x']", "give Claims(operations, not_claimed, "),
    "claims with text": ("claims = Claims('StaticReshape')", "two tuples and a bool"),
    "an operation that is none": ("operations = ('Reshape',)", "claims an operation 'Reshape'"),
    "an operation that is a number": ("operations = (3,)", "has 3, where the name of"),
    "a facet that is none": ("not_claimed = ('zeros',)", "'zeros', which is no facet; there are"),
    "a facet that is a number": ("not_claimed = (3,)", "has 3, where the name of"),
    "a layout that is none": ("not_claimed = ('layout:revered',)", "no facet; did you mean 'layout:reversed'?"),
    "a layout that every backend takes": ("not_claimed = ('layout:dense',)", "'layout:dense', which is no facet"),
    "a layout that shares the facet of another": (
        "not_claimed = ('layout:swapped',)", "did you mean 'layout:transposed'?"),
    "a number of another family than rank": (
        "not_claimed = ('layout:65',)", "'layout:65', which is no facet; did you mean 'layout"),
    "a rank that no case has": ("not_claimed = ('rank:66',)", "did you mean 'rank:65'?"),
    "a length that is no limit": ("not_claimed = ('length:2^32',)", "did you mean 'length:2^31'?"),
    "an identity that is a plain tuple": ("identity = ('it', '1', ())", "give Identity(name, version)"),
    "a member of what has none": (
        "not_claimed = ('chain:long',)", "'chain:long', which is no facet; did you mean 'chain'?"),
    "a bug for a refusal": ("rejections = (TypeError,)", "`rejections` names TypeError"),
    "more than everything": ("rejections = (BaseException,)", "`rejections` names BaseException"),
    "not_claimed without a comma": (
        "not_claimed = ('declared')", "`not_claimed` is 'declared'; write ('declared',), with the comma"),
    "no tuple of facets": (
        "not_claimed = None", "`not_claimed` is None; write a tuple of names, or leave the line out"),
    "a refusal without a comma": ("rejections = ValueError", "write (ValueError,), with the comma"),
    "the text of a refusal": ("rejections = ('ValueError',)", "holds 'ValueError', which is no exception class"),
    "an exception for a class": ("rejections = (ValueError(),)", "holds ValueError(), which is no exception class"),
    "everything for a refusal": ("rejections = (Exception,)", "`rejections` names Exception"),
}  # fmt: skip
WRITTEN = {
    "does not parse": ("def It(:", "SyntaxError"),
    "import fails": ("import no_such_library", "No module named 'no_such_library'; install what it needs"),
    "import of a neighbour": ("from . import it", "; name it as a module of its package, package.module:Class"),
    "import raises": ("raise ValueError('at once')", "cannot be started: ValueError: at once ("),
    "another class than those it imports": ("class Other(Right): pass", "its classes are Other, Right\n"),
    "a function": ("def It(src, shape, special_zero): return src", "'It' is a function; an adapter is a class"),
    "import exits": ("raise SystemExit(0)", "cannot be started: SystemExit: 0"),
    "import raises what is no Exception": (
        "class Odd(BaseException): pass\nraise Odd('odd')", "cannot be started: Odd: odd"),
    "import raises what cannot be written": (
        "class Mute(Exception):\n def __str__(self): raise KeyError\nraise Mute", "Mute: (Mute, which cannot"),
    "nothing in it": ("class It: pass", "has no `identity`"),
    "no claims": ("class It:\n identity = Identity('x', '1')", "has no `claims`"),
    "no compile": ("class It:\n identity, claims = Identity('x', '1'), Claims(())", "has no `compile`"),
    "compile is data": ("class It:\n identity, claims, compile = Identity('x', '1'), Claims(()), 3", "not a method"),
    "no reshape": ("class It(FunctionAdapter):\n name, version = 'x', '1'", "does not define reshape"),
    "an identity that raises": ("class It(Right):\n @property\n def identity(self): raise KeyError('x')", "KeyError"),
    "an identity that is looked up in vain": (
        "class It(Right):\n @property\n def identity(self): return Identity.no_such", "has no attribute 'no_such' ("),
    **{name: (f"class It(Right):\n {line}", words) for name, (line, words) in RIGHT_BUT.items()},
}  # fmt: skip


@pytest.mark.parametrize("what", WRITTEN)
def test_a_backend_that_is_none_ends_with_3_and_one_line(command: Command, backend: Any, what: str) -> None:
    text, words = WRITTEN[what]
    assert command.run(backend(text)).expect(3, err=words, lines=1).out == ""


@pytest.mark.slow
@pytest.mark.parametrize("what", ["import raises", "import exits", "no reshape", "a facet that is none"])
def test_the_same_is_said_from_a_process(command: Command, backend: Any, what: str) -> None:
    text, words = WRITTEN[what]
    command.run(backend(text), "--isolation", "worker").expect(3, err=words, lines=1)


def test_an_error_names_the_file_that_may_be_meant(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text("class It: pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "name the file and the class: ./of_mine.py:Class" in command.run("of_mine").err
    assert "write ./of_mine.py:It" in command.run("of_mine:It").err
    assert "has no `identity`" in command.run("./of_mine.py:It").err, "the file is read"


@pytest.mark.slow
@pytest.mark.parametrize("body", ["return np.reshap(src, shape)", "return np.reshape(src, 'x')"])
def test_an_error_of_the_adapter_says_where(command: Command, backend: Any, body: str) -> None:
    it = f"import numpy as np\nclass It(Right):\n    def reshape(self, src, shape, special_zero):\n        {body}\n"
    command.run(backend(it), "-k", "flattens", "--isolation", "worker")
    (detail,) = {result.detail for result in read(command.out / "results.jsonl").results if result.detail}
    assert detail.startswith(("adapter error: AttributeError: ", "adapter error: TypeError: "))
    assert f"(mine.py:{HEAD.count(chr(10)) + 4})" in detail


# ── what answers nonsense ─────────────────────────────────────────────────────────────────────────
def answering(kind: str) -> miniatures.Answers:
    adapter = miniatures.Answers()
    adapter.kind = kind
    return adapter


@pytest.mark.parametrize("kind", miniatures.Answers.KINDS)
def test_no_answer_that_is_none_passes(plan: Plan, kind: str) -> None:
    results = list(run_rows(plan.rows, answering(kind)))
    wrong = [each for each in results if each.outcome.kind != "rejected"]
    assert len(wrong) < len(results) == len(plan.rows)
    assert not any("pass" in each.verdicts.values() for each in wrong)
    if kind in ("more elements than there can be", "a length below 0"):  # a tensor for all we know, of wrong dims
        assert {each.outcome.kind for each in wrong} == {"tensor"}
        return
    assert verdicts(wrong) == {"error"}
    assert {(each.outcome.kind, each.diagnosis, bool(each.outcome.message)) for each in wrong} == {
        ("error", "adapter error", True)
    }


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("None", "run returned NoneType, not a Tensor or a NumPy array"),
        ("list", "run returned list, not a Tensor"),
        ("object array", "run returned an array of object, which is no element type"),
        ("big-endian array", "run returned a big-endian array of >f4"),
        ("an unknown type", "a Tensor of type 'f8'"),
        ("too few strides", "with 1 strides"),
    ],
)
def test_an_error_names_the_kind_of_answer(plan: Plan, kind: str, words: str) -> None:
    assert words in str(next(run_rows(plan.rows, answering(kind))).outcome.message)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [miniatures.RaisesInCompile, miniatures.RaisesInRun])
@pytest.mark.parametrize("what", miniatures.RAISED)
def test_whatever_is_raised_is_a_verdict_and_the_run_goes_on(
    plan: Plan, stage: type[miniatures.RaisesInCompile], what: str
) -> None:
    adapter = stage()
    adapter.what = what
    results = list(run_rows(plan.rows, adapter))
    due = {"MemoryError": {"fail"}}.get(what, {"fail"} if what.startswith("Unsupported") else {"error"})
    assert [each.row for each in results] == [row.id for row in plan.rows]
    assert verdicts(results) == due
    assert all(len(str(each.outcome.message)) < 3000 for each in results)
    if what.startswith("Rejected"):
        assert "the stage is compile or run, the message text" in str(results[0].outcome.message)


@pytest.mark.parametrize("adapter", [miniatures.Deep(), miniatures.NoProgram()])
def test_a_compilation_that_comes_to_nothing_is_an_error(plan: Plan, adapter: miniatures.Bent) -> None:
    assert verdicts(run_rows(plan.rows[:30], adapter)) == {"error"}


def test_a_program_that_died_is_compiled_again_for_the_next_step(plan: Plan) -> None:
    compiled: list[Any] = []

    class DiesOnce(miniatures.Bent):
        """Dies at its first call."""

        def compile(self, graph: Any) -> Any:
            compiled.append(graph)
            return super().compile(graph)

        def bent(self, answer: Any, src: Any, shapes: Any) -> Any:
            if len(compiled) == 1:
                raise Crashed("SIGSEGV")
            return answer

    row = next(r for r in plan.rows if r.id == "two-calls[DynamicReshape-1-f32-s32]")
    (result,) = run_rows([row], DiesOnce())
    assert len(compiled) == 2
    assert [outcome.kind for outcome in result.outcomes] == ["crash", "tensor"]
    assert result.outcomes[1] == Outcome("tensor", "f32", (4, 3))
    assert result.step == 0
    assert set(result.verdicts.values()) == {"fail"}


def test_an_interrupt_by_a_person_is_no_error_of_a_backend(plan: Plan) -> None:
    class Interrupted(miniatures.Bent):
        """Is interrupted as by a person at the keyboard."""

        def compile(self, graph: Any) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_rows(plan.rows, Interrupted()))


def test_an_interrupt_while_a_backend_starts_is_raised(backend: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        load_adapter(backend("class It(Right):\n def __init__(self):\n  raise KeyboardInterrupt"))


@pytest.mark.slow
def test_errors_are_the_adapters_and_end_with_1(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for what in ("surrogates", "unwritable", "SystemExit"):
        monkeypatch.setattr(miniatures.RaisesInRun, "what", what)
        said = reporting.run(mini("RaisesInRun")).expect(1, out=["adapter errs", "adapter error"])
        assert "does not conform" not in said.out
        assert all(character.isprintable() or character == "\n" for character in said.out)
        assert read(reporting.out / "results.jsonl").footer["verdicts"]["pass"] == 0


def test_a_name_that_no_file_can_have_is_no_obstacle(reporting: Command, backend: Any) -> None:
    reporting.run(backend("class It(Right):\n name, version = '../*<b>|', '?'")).expect(1)
    assert read(reporting.out / "results.jsonl").header["backend"]["name"] == "../*<b>|"
