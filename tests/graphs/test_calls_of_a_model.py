"""The calls of a model become cases, and `--run` makes exactly these on a backend."""

from pathlib import Path

import pytest

from conformance.load.cases import load_cases
from conformance.system.files import lock_folder
from tests.builders import ROOT, Cli, spec, write_cases
from tests.graphs.graph_files import UNKNOWN, dump, static, tensor

DIALECT = ROOT / "examples" / "dialect"
RESIZES = """
import numpy as np
from conformance.adapter import FunctionAdapter


class Resizes(FunctionAdapter):
    name, version = "resizes", "1"
    not_claimed = ("declared", "form", "rank:65")
    answers_special_zero = True

    def reshape(self, src, shape, special_zero):
        return np.resize(src, [abs(int(entry)) for entry in shape]).copy()
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model with a baked-in batch; reports go below the test's own folder."""
    monkeypatch.chdir(tmp_path)
    return dump(tmp_path, static(tensor(0, 1, 3, 4), [1, 12], tensor(1, 1, 12)))


@pytest.fixture
def beside_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls are run beside a few cases, so that a report of the thousands that were not run need not be written."""
    monkeypatch.chdir(tmp_path)
    few = write_cases(tmp_path / "few")
    (few / "ids.lock").write_text("".join(f"{name}\n" for name in sorted(load_cases(few, spec()))), encoding="utf-8")
    monkeypatch.setattr("conformance.load.cases.find_cases_folder", lambda: few)


@pytest.mark.slow
def test_each_call_is_written_once_with_what_is_expected(model: str, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "cases/calls.yaml"
    cli("check-graph", model, model, "--input", "0=1..3,3,4", "--cases", str(path)).expect(
        1, out=f"wrote 3 cases to {path}\n"
    )
    all_cases = load_cases(path.parent, spec())
    ours = [case for name, case in all_cases.items() if name.startswith("graph-call-")]
    assert [case.steps[0].src for case in ours] == [(1, 3, 4), (2, 3, 4), (3, 3, 4)]
    cli("run", "reference", "--suite", tmp_path, "-k", "graph-call-").expect(4)


@pytest.mark.parametrize(("src", "shape"), [((1 << 20, 1 << 20), [-1]), ((1,), [1] * 257)])
def test_calls_that_no_case_can_hold_are_counted(
    src: tuple[int, ...], shape: list[int], tmp_path: Path, cli: Cli
) -> None:
    path = dump(tmp_path, static(tensor(0, *src), shape, tensor(1, *UNKNOWN)))
    said = cli("check-graph", path, "--cases", str(tmp_path / "cases.yaml")).expect(0).out
    assert "cases.yaml is not written, as no call makes a case" in said
    assert not (tmp_path / "cases.yaml").exists()
    assert "1 call left out: not decided, of a length that --input does not give, too large, " in said
    path = dump(tmp_path, static(tensor(0, *UNKNOWN), [3], tensor(1, 3)))
    said = cli("check-graph", path, "--run", "reference").expect(4).out
    assert "; nothing was run on reference: 1 call left out: not decided" in said


@pytest.mark.usefixtures("beside_few")
def test_a_call_that_its_declared_dst_decides_is_no_case(tmp_path: Path, cli: Cli) -> None:
    """The case had no declared dst, and so was a legal call of an illegal node."""
    other = static(tensor(2, 2, 3), [6], tensor(3, 6))
    path = dump(tmp_path, static(tensor(0, 2, 3), [3, 2], tensor(1, 2, 3)), other)
    said = cli("check-graph", path, "--cases", str(tmp_path / "cases.yaml")).expect(1, out="wrote 1 case to")
    assert said.out.splitlines()[-1] == "exit 1: a reshape is illegal"
    cli("check-graph", path, "--run", "reference").expect(1, out="1 call left out: ")


@pytest.mark.usefixtures("beside_few")
def test_a_case_cites_a_rule_that_forbids_the_call(tmp_path: Path, cli: Cli) -> None:
    """It was filed under the silent rule of another document, so that the suite refused its own file."""
    path = dump(tmp_path, static(tensor(0, 0, 3), [0, -1], tensor(1, 0, 3)))
    cli("check-graph", path, "--run", "reference").expect(1)
    said = cli("check-graph", path, "--document", "static-oneapi", "--run", "reference").expect(0).out
    assert "static-graph-v0.9" not in said


@pytest.mark.slow
@pytest.mark.usefixtures("beside_few")
def test_a_backend_that_answers_otherwise_fails(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "resizes.py").write_text(RESIZES, encoding="utf-8")
    path = dump(tmp_path, static(tensor(0, 2, 3, 4), [-1, 12], tensor(1, 2, 12)))
    cli("check-graph", path).expect(0)
    cli("check-graph", path, "--run", f"{tmp_path}/resizes.py:Resizes").expect(1, out="graph-call-1[StaticReshape-f32]")
    assert (tmp_path / "conformance-report/check-graph/report.html").is_file()


ENDS = {
    # what is given: (files, options, the exit line)
    "all is right": (["model"], [], "exit 0: no reshape is illegal, for the lengths tried; {} fails none of 1 call"),
    "one is illegal": (["model"], ["--input", "0=2,3,4"], "exit 1: a reshape is illegal"),
    "one file is unreadable": (["model", "bad"], [], "exit 2: a file cannot be read"),
    "no file is readable": (["bad"], [], "exit 2: a file cannot be read; nothing was run on {}"),
    "the type is not claimed": (
        ["model"],
        [],
        "exit 4: {} was run on 0 of 1 call; the others are not claimed, or were not run",
    ),
}


@pytest.mark.usefixtures("beside_few")
@pytest.mark.parametrize("name", ENDS)
def test_the_one_exit_line_is_the_exit_code(name: str, model: str, tmp_path: Path, cli: Cli) -> None:
    files, options, end = ENDS[name]
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    (tmp_path / "resizes.py").write_text(RESIZES.replace('("declared"', '("type:f32", "declared"'), encoding="utf-8")
    backend = "resizes.py:Resizes" if "claimed" in name else "reference"
    paths = [str(tmp_path / "bad.json") if each == "bad" else model for each in files]
    said = cli("check-graph", *paths, *options, "--run", backend).expect(int(end[5]))
    lines = [line for line in said.out.splitlines() if line.startswith("exit ")]
    assert lines == [end.format(backend)]


@pytest.mark.usefixtures("beside_few")
def test_a_second_run_leaves_the_calls_of_the_first(model: str, tmp_path: Path, cli: Cli) -> None:
    own = tmp_path / "conformance-report" / "check-graph-suite"
    cli("check-graph", model, "--run", "reference").expect(0)
    calls = (own / "cases" / "calls.yaml").read_text("utf-8")
    with lock_folder(own):
        other = dump(tmp_path, static(tensor(0, 2, 3), [6], tensor(1, 6)))
        cli("check-graph", other, "--run", "reference").expect(2, lines=1, err="is in use by another run")
    assert (own / "cases" / "calls.yaml").read_text("utf-8") == calls


@pytest.mark.usefixtures("beside_few")
@pytest.mark.skipif(not DIALECT.is_dir(), reason="the examples stay in the clone")
def test_the_calls_are_judged_by_the_specification_of_a_suite(model: str, cli: Cli) -> None:
    for _ in range(2):
        cli("check-graph", model, "--suite", DIALECT, "--run", "reference").expect(0, out="acme-2026")
    said = cli("check-graph", model, "--run", "reference").expect(0)
    assert "acme-2026" not in said.out


@pytest.mark.usefixtures("beside_few")
def test_a_call_counts_for_the_operation_of_its_node_only(model: str, tmp_path: Path, cli: Cli) -> None:
    text = RESIZES.replace("    not_claimed", '    operations = ("DynamicReshape-1",)\n    not_claimed')
    (tmp_path / "resizes.py").write_text(text, encoding="utf-8")
    said = cli("check-graph", model, "--run", "resizes.py:Resizes").expect(4)
    assert "was run on 0 of 1 call; the others are not claimed" in said.out


@pytest.mark.parametrize("other", ["x.onnx", "x.xml"])
def test_a_run_takes_dumps_and_other_files_apart(model: str, cli: Cli, other: str) -> None:
    """A call of a dump was also made as the operations that its node is not."""
    said = cli("check-graph", model, other, "--run", "reference").expect(2, lines=1)
    assert f"graph.json is a dump of oneDNN Graph and {other} is not" in said.err


def test_json_and_run_are_not_mixed(model: str, cli: Cli) -> None:
    cli("check-graph", model, "--run", "reference", "--json").expect(2, err="leave --json out")
