"""The functions of `import conformance` say what the commands say, in the same words."""

import doctest
import gc
import json
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import conformance

from .builders import ROOT, Cli

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.slow
def test_import_loads_nothing_and_shows_every_name() -> None:
    code = (
        "import conformance, conformance.run.judge, conformance.meaning.contract\n"
        "assert callable(conformance.run) and callable(conformance.meaning)\n"
        "assert {*conformance.__all__} < {*dir(conformance)}, dir(conformance)\n"
    )
    light = "import sys; import conformance; print(sorted(n for n in sys.modules if n.partition('.')[0] in "
    light += "('numpy', 'yaml', 'conformance', 'argparse')))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    done = subprocess.run([sys.executable, "-c", light], check=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "['conformance']"


def test_a_name_that_there_is_not() -> None:
    """Type checkers report it too: without their error the comment would be one."""
    with pytest.raises(AttributeError, match="'conformance' has no attribute 'chek'"):
        conformance.chek  # type: ignore[attr-defined]  # noqa: B018


def test_meaning_says_what_the_command_says(cli: Cli) -> None:
    words = ("meaning", "--src", "0,3", "--shape", "0,-1", "--special-zero", "false", "--json")
    said = json.loads(cli(*words)[1])["meanings"]
    meanings = conformance.meaning((0, 3), (0, -1), False)
    assert {
        name: [each.kind, each.dst and [*each.dst], [(c.rule, [*map(list, c.at)]) for c in each.clauses]]
        for name, each in meanings.items()
    } == {
        name: [each["kind"], each["dst"], [(b["rule"], [[*at.values()] for at in b["at"]]) for b in each["because"]]]
        for name, each in said.items()
    }
    assert {each.kind for each in meanings.values()} == {"illegal", "unspecified"}
    named = conformance.meaning(("n", 3), (2, -1), document="static-oneapi")["static-oneapi"]
    assert (named.kind, named.reason) == (
        "conditional", "legal if and only if n is even (dst [2, 3*n/2]); otherwise illegal: same-volume",
    )  # fmt: skip


BAD_ARGUMENTS: dict[Any, list[tuple[dict[str, Any], str]]] = {
    conformance.meaning: [
        ({"src": (3, -1), "shape": (3,)}, "src holds -1, and no tensor has a length below 0"),
        ({"src": (3.5,), "shape": (3,)}, "'3.5' is not a whole number; write for example src=(3, 4, 5)"),
        ({"src": 3, "shape": (3,), "document": "static"}, "did you mean 'static-oneapi'?"),
        ({"src": (float("nan"), 3), "shape": (6,)}, "'nan' is not a whole number; write for example src=(3, 4, 5)"),
        ({"src": 3, "shape": np.float32("inf")}, "'inf' is not a whole number"),
        ({"src": ([2, [3]],), "shape": (6,)}, "src holds '[2, [3]]', and a length is one number"),
        ({"src": None, "shape": (3,)}, "'None' is not a whole number"),
        ({"src": 3, "shape": 3, "document": ["static-oneapi"]}, "unknown document"),
        ({"src": 3, "shape": 3, "special_zero": "maybe"}, "'maybe' is neither true nor false"),
        ({"src": 3, "shape": 3, "special_zero": "yes"}, "'yes' is neither true nor false"),
        ({"src": 3, "shape": 3, "special_zero": None}, "'None' is neither true nor false; write special_zero=True"),
        ({"src": (6,), "shape": [[2, 3]]}, "shape holds '[2, 3]', and a length is one number"),
        ({"src": (6,), "shape": np.array([[2, 3]])}, "shape holds '[2 3]', and a length is one"),
        ({"src": X, "shape": (6,)}, "and a length is one number; give dims, such as x.shape"),
        ({"src": ("n,m",), "shape": 6}, "src holds 'n,m', and a length is one number"),
        ({"src": ("3x2",), "shape": (6,)}, "src holds '3x2', and a length is one number"),
        ({"src": (6,), "shape": ("",)}, "shape holds '', and a length is one number"),
        ({"src": {2, 3}, "shape": 6}, "src is {2, 3}, which is no list of lengths; write a list"),
        ({"src": b"23", "shape": 6}, "src is b'23', which is no list of lengths; write a list"),
    ],
    conformance.check: [
        ({"answer": np.ma.masked_equal(X, 1), "src": X, "shape": (2, 3)}, "an array has masked elements"),
        ({"answer": [[1, 2], [3]], "src": X, "shape": 6}, "[[1, 2], [3]] is no array; do its rows have different"),
        ({"answer": X, "src": X, "shape": ("n",)}, "'n' is not a whole number"),
        ({"answer": X, "src": X + 1j, "shape": (6,)}, "complex64, which is no element type"),
        ({"answer": ValueError, "src": X, "shape": (4,)}, "give an instance of the exception ValueError"),
        ({"answer": KeyboardInterrupt(), "src": X, "shape": (4,)}, "by which no library rejects"),
        ({"answer": TypeError("x"), "src": X, "shape": (4,)}, "give conformance.Rejected('run', str("),
        ({"answer": AssertionError(), "src": X, "shape": (4,)}, "by which bugs speak too"),
        ({"answer": X.astype(">f4"), "src": X, "shape": (2, 3)}, "a big-endian array of >f4; give it"),
        *[
            ({"answer": error, "src": X, "shape": (4,)}, f"the answer is {error!r}, by which no library rejects a call")
            for error in (NameError("x"), ImportError("x"), SyntaxError("x"), conformance.Unsupported("x"))
        ],
    ],
    conformance.run: [
        ({"adapter": "numpy", "select": "copies", "quick": True}, "-k and --quick both choose rows"),
        ({"adapter": type("Cli", (Cli,), {"__module__": Cli.__module__})}, "is another class than"),
        ({"adapter": "numpy", "quick": "no"}, "quick 'no' is neither true nor false; write quick=True"),
        ({"adapter": "numpy", "jobs": 0}, "'0' is not a whole number from 1"),
        ({"adapter": "numpy", "documents": {"static"}}, "unknown document 'static'; did you mean 'static-oneapi'?"),
        ({"adapter": "numpy", "waivers": "/nowhere"}, "cannot be read: No such file"),
        ({"adapter": "numpy", "out": __file__}, f"{__file__} is a file; name a folder"),
        ({"adapter": 3}, "3 is no class"),
        (
            {"adapter": type("Mine", (), {"__module__": "nowhere"})},
            "a notebook by %%writefile mine.py, and give 'mine.py",
        ),
    ],
}


class Six:
    """A tensor without dims, as PyTorch and TensorFlow have it."""

    ndim = 0

    def __index__(self) -> int:
        return 6

    def __repr__(self) -> str:
        return "tensor(6, shape=())"


@pytest.mark.parametrize(
    "shape", [[6], (6,), 6, "6", iter([6]), np.array([6]), np.array(6), [np.array(6)], range(6, 7), Six(), [Six()]]
)
def test_lengths_come_in_any_form_that_has_an_order(shape: Any) -> None:
    (found,) = conformance.meaning((2, 3), shape, document="static-oneapi").values()
    assert (found.kind, found.dst) == ("legal", (6,))


@pytest.mark.parametrize(
    ("function", "arguments", "words"), [(function, *each) for function, rows in BAD_ARGUMENTS.items() for each in rows]
)
def test_bad_arguments_are_value_errors(function: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        function(**arguments)


class Unprintable(ValueError):
    """A rejection without words."""

    def __str__(self) -> str:
        raise ValueError


WRONG: list[tuple[Any, Any, tuple[int, ...], str]] = [
    (X.reshape(3, 2), X, (3, 2), ""),
    (X.reshape(3, 2), X.astype(">f4"), (3, 2), ""),
    (conformance.Rejected("run", "no"), X, (7,), ""),
    (MemoryError("no"), X, (7,), "asked for more memory"),
    (X.astype(ml_dtypes.bfloat16).reshape(6), X.astype(ml_dtypes.bfloat16), (-1,), ""),
    (ValueError("no"), X, (7,), ""),
    (X.T, X, (3, 2), "column-major order: 4 of 6 elements differ"),
    (X.reshape(6), X, (3, 2), "answered [6], due is [3, 2]"),
    (X.astype(float), X, (2, 3), "answered f64, src is f32"),
    (None, X, (2, 3), "the answer is None; is a return missing?"),
    (-X, X, (2, 3), "sign"),
    (X, X, (7,), "answered f32[2, 3], though the call breaks same-volume"),
    (ValueError("no"), X, (6,), "rejected at run: no"),
    (Unprintable(), X, (6,), "rejected at run: (Unprintable, which cannot be written: ValueError)"),
]


@pytest.mark.parametrize(("answer", "src", "shape", "wrong"), WRONG)
def test_check_names_what_is_wrong(answer: Any, src: Any, shape: tuple[int, ...], wrong: str) -> None:
    if not wrong:
        assert set(conformance.check(answer, src, shape).values()) == {"pass"}
        return
    with pytest.raises(conformance.WrongAnswer) as raised:
        conformance.check(answer, src, shape)
    assert wrong in str(raised.value)
    assert len(raised.value.wrong) == 5


@pytest.mark.slow
def test_run_says_what_the_command_says(cli: Cli, tmp_path: Path) -> None:
    words = ("--document", "static-oneapi", "--type", "f32", "-k", "copies", "--isolation", "none")
    said = json.loads(cli("run", "numpy", *words, "--out", str(tmp_path / "theirs"), "--json")[1])
    result = conformance.run(
        "numpy", documents=["static-oneapi"], types=("f32",), select="copies", isolation="none",
        out=tmp_path / "ours",
    )  # fmt: skip
    ours = result.to_json()
    for data in (said, ours):
        del data["out"]
        for each in data["failures"]:
            del each["milliseconds"]
    assert json.loads(json.dumps(ours)) == said
    assert (result.exit_code, result.conforms, result.label) == (1, False, "wrong answer")
    causes = {cause.replace("perhaps: ", ""): number for cause, number in result.causes.items()}  # of other versions
    copying = [failure for failure in result.failures if failure.cause == "copies-no-length"]
    assert causes["wrong answer: A 0 that copies is read as a length"] == len(copying) > 40
    assert "A 0 that copies is read as a length" in result._repr_html_()
    assert "exit 1" in repr(result)
    assert (tmp_path / "ours" / "report.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("is_in_package", [True, False])
def test_run_takes_a_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_package: bool) -> None:
    package = tmp_path / "their_package" if is_in_package else tmp_path
    package.mkdir(exist_ok=True)
    (package / "kernel.py").write_text("def fold(array, shape): return array.reshape(shape).copy()\n")
    (package / "their_adapter.py").write_text(
        f"from {'.kernel' if is_in_package else 'kernel'} import fold\nfrom conformance import FunctionAdapter\n"
        "class Theirs(FunctionAdapter):\n    name, version = 'their<s>', '7'\n"
        "    def reshape(self, src, shape, special_zero): return fold(src, shape)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module: Any = import_module("their_package.their_adapter" if is_in_package else "their_adapter")
    result = conformance.run(module.Theirs, select="swaps-two-lengths", documents=["static-oneapi"])
    assert result.verdicts["pass"] == 3
    assert "their&lt;s&gt; 7: incomplete" in result._repr_html_()


def test_a_part_that_passes_does_not_conform() -> None:
    """A row is not the suite. The run leaves nothing frozen for the garbage collector of the program."""
    result = conformance.run("reference", select="swaps-two-lengths", isolation="none")
    assert (result.exit_code, result.conforms, result.failures) == (4, False, ())
    assert gc.get_freeze_count() == 0
    with pytest.raises(conformance.CannotStart, match="unknown backend '--help'"):
        conformance.run("--help", select="swaps-two-lengths")


def test_runs_in_threads_leave_the_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = {"select": "swaps-two-lengths", "isolation": "none"}
    threads = [Thread(target=conformance.run, args=("reference",), kwargs=arguments) for _ in range(3)]
    for act in (Thread.start, Thread.join):
        for thread in threads:
            act(thread)
    print("seen", flush=True)
    os.write(1, b"seen too")
    assert capfd.readouterr().out == "seen\nseen too"


def test_no_run_begins_while_its_adapter_is_imported(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import conformance\nclass Mine(conformance.FunctionAdapter):\n    name, version = 'mine', '1'\n"
        "conformance.run('mine.py:Mine', select='swaps-two-lengths', isolation='none')\n"
    )
    command = [sys.executable, "mine.py"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "calls conformance.run while it is imported" in done.stderr.splitlines()[-1]
    assert "(mine.py:4)" in done.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="docs/ is not beside an installed suite")
def test_the_page_and_the_example_are_true() -> None:
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, tried = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False, optionflags=options)
    assert (failed, tried > 8) == (0, True)
    example = ROOT / "examples" / "unit-test" / "test_my_reshape.py"
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", example], check=True, cwd=ROOT)
