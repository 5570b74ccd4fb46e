"""examples/onnx: what ONNX says of a call, as onnx's own node tests have it, and ONNX Runtime judged by it."""

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Meaning
from conformance.selfcheck.documents import verify_documents
from tests.adapters.backends import load_or_skip
from tests.builders import ROOT, Cli

EXAMPLE = ROOT / "examples" / "onnx"
pytestmark = pytest.mark.skipif(not EXAMPLE.is_dir(), reason="the examples stay in the clone")
NEVER, MEETS, OPEN = "no-allowzero", "zero-meets-infer", "infer-undetermined"


def meanings(src: tuple[int, ...], shape: tuple[int, ...], special_zero: bool) -> dict[str, Meaning]:
    spec = load_spec(EXAMPLE / "spec")
    return {name: contract.meaning(src, shape, special_zero) for name, contract in contracts(spec).items()}


@pytest.mark.parametrize(
    ("src", "shape", "special_zero", "in_5", "since_14"),
    [
        ((2, 3, 4), (2, 0, 1, -1), True, (2, 3, 1, 4), (2, 3, 1, 4)),
        ((0, 3), (0, -1), False, NEVER, MEETS),
        ((0, 3), (0, -1), True, OPEN, OPEN),
        ((0, 3, 4), (3, 4, 0), False, NEVER, (3, 4, 0)),
        ((0, 3, 4), (3, 4, 0), True, "same-volume", "same-volume"),  # a comment beside onnx's test expects (3, 4, 4)
        ((1, 1), (), True, (), ()),
        ((2, 3), (2, 3, 0), True, "zero-past-rank", "zero-past-rank"),
        ((6,), (-6,), True, "lower-bound", "lower-bound"),
    ],
)
def test_onnx_says_what_a_call_means(
    src: tuple[int, ...], shape: tuple[int, ...], special_zero: bool, in_5: object, since_14: object
) -> None:
    said = meanings(src, shape, special_zero)
    assert {name: each.dst if each.kind == "legal" else each.rules[0] for name, each in said.items()} == {
        "onnx-5": in_5, "onnx-14": since_14, "onnx-25": since_14,
    }  # fmt: skip


def test_the_example_of_onnx_is_whole(cli: Cli) -> None:
    cli("check", "--suite", EXAMPLE).expect(0, out="the specification is whole")


def test_the_readme_of_onnx_shows_what_is_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```\n\$ conformance (meaning .*)\n((?:.*\n)*?)```", text)
    assert len(blocks) >= 2
    for words, shown in blocks:
        assert cli(*shlex.split(words)).expect(0).out.strip() == shown.strip()


def test_a_suite_of_other_operations_catches_planted_backends(cli: Cli, tmp_path: Path) -> None:
    backend = f"{ROOT / 'adapters' / 'template.py'}:Template"
    words = ("--suite", EXAMPLE, "-k", "flattens and f32", "--isolation", "none", "--out", tmp_path)
    cli("run", backend, *words).expect(4, out="6 pass")


def test_legal_rows_of_onnx_in_all_types_are_node_tests(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    cli("export", "onnx", "--suite", EXAMPLE, "--out", tmp_path / "out").expect(0)
    assert (tmp_path / "out" / "test_reshape_flattens_u64_constant" / "model.onnx").is_file()


def load_newest_onnx() -> Any:
    """Return onnx if it has Reshape of opset 25."""
    onnx = pytest.importorskip("onnx")
    if onnx.defs.onnx_opset_version() < 25:
        pytest.skip("this onnx is older than opset 25")
    return onnx


@pytest.mark.slow
@pytest.mark.exhaustive
def test_onnx_has_the_texts_that_are_pinned(tmp_path: Path) -> None:
    onnx = load_newest_onnx()
    write = importlib.import_module("onnx.defs.gen_doc").display_schema
    for opset in (5, 14, 25):
        text = write(onnx.defs.get_schema("Reshape", opset), [], "")
        (tmp_path / f"reshape-{opset}.md").write_text(text, encoding="utf-8")
    problems, coverage = verify_documents(load_spec(EXAMPLE / "spec"), tmp_path)
    assert not problems
    assert coverage
    assert [each.uncovered for each in coverage.values()] == [0, 0, 0]
    docs = {opset: onnx.defs.get_schema("Reshape", opset).doc for opset in (5, 13, 14, 19, 21, 23, 24, 25)}
    assert docs[13] == docs[5]
    assert len(set(docs.values())) == 2


def test_onnx_node_tests_are_legal_with_their_answers() -> None:
    pytest.importorskip("onnx")
    tests = importlib.import_module("onnx.backend.test.case.node")
    importlib.import_module("onnx.backend.test.case.node.reshape")
    seen = 0
    for case in tests._NodeTestCases:
        (node,) = case.model.graph.node if len(case.model.graph.node) == 1 else (None,)
        if node is None or node.op_type != "Reshape":
            continue
        (src, shape), (dst,) = case.data_sets[0]
        allowzero = any(attribute.i for attribute in node.attribute)
        for document, meaning in meanings(src.shape, tuple(map(int, shape)), not allowzero).items():
            if not (allowzero and document == "onnx-5"):
                assert (meaning.kind, meaning.dst) == ("legal", dst.shape), (case.name, document)
                seen += 1
    assert seen >= 29


@pytest.mark.slow
@pytest.mark.parametrize("document", ["onnx-5", "onnx-14"])
def test_onnx_runtime_is_judged_by_the_text_of_onnx(document: str, cli: Cli, tmp_path: Path) -> None:
    version = load_or_skip("onnxruntime").identity.version
    is_wrong = document == "onnx-14" and tuple(map(int, version.split(".")[:2])) >= (1, 29)
    words = ("run", "onnxruntime", "--suite", EXAMPLE, "--document", document, "--out", tmp_path)
    cli(*words).expect(1 if is_wrong else 0)
    results = read(tmp_path / "results.jsonl").results
    failed = {result.row.partition("[")[0] for result in results if "fail" in result.verdicts.values()}
    assert failed == ({"literal-zero-beside-infer", "literal-zero-beside-infer-after"} if is_wrong else set())
