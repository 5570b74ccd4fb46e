"""`conformance export json`: calls for programs in any language, and the same rows read back."""

import hashlib
import json
import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.exchange.json_export import choose_vectors, write_vectors
from conformance.load.faults import load_faults
from conformance.load.folders import find_spec_folder
from conformance.load.schema import schema_of
from conformance.meaning.contract import contracts
from conformance.meaning.faults import KnownFaults
from conformance.model import Case, ExpectedResult, Place, PlainCall, Step
from conformance.plan.memory import patterns
from conformance.plan.rows import Row, row_of
from tests.builders import ROOT, Cli, bundled_plan, write_suite

PLAN = bundled_plan()
CHOICE = choose_vectors(PLAN.rows)
EVERY_31ST = CHOICE.chosen[::31]
FEWER_ELEMENTS = [group for group in CHOICE.chosen if math.prod(group.rows[0].case.steps[0].src) < 1 << 23]
COMPILED, KNOWN = contracts(PLAN.suite.spec), KnownFaults(load_faults())
EXAMPLE = ROOT / "examples" / "vectors"
STRICT = "-std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
DUMP = """
#include "reshape_vectors.hpp"
#include <iostream>
#include <set>
int main(int, char **argv) {
    std::set<std::string> seen;
    for (const char *folder = *++argv; *++argv;)
        for (const auto &test : reshape_vectors::read(folder, *argv)) {
            if (!seen.insert(test.id).second) continue;
            const auto made = test.elements();
            std::cout << test.id << " " << made.size() << "\\n";
            std::cout.write(reinterpret_cast<const char *>(made.data()), static_cast<std::streamsize>(made.size()));
        }
}
"""
in_cpp = pytest.mark.skipif(
    not EXAMPLE.is_dir() or not Path("/usr/include/gtest/gtest.h").is_file(),
    reason="the examples stay in the clone, and googletest is needed",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled suite as vectors, except 14 tests of 17 million elements, which take most of the time."""
    out = tmp_path_factory.mktemp("vectors")
    write_vectors(PLAN.suite, FEWER_ELEMENTS, out)
    return out


def written_in(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.glob("*.json")):
        yield from json.loads(path.read_bytes()).get("tests", ())


def case_of(test: Any, rule: str) -> Case:
    """Make a case from what a test says; it expects what the test says of the documents."""
    type_, contents = test["src"]["type"], test["contents"]
    expect = {
        document: ExpectedResult(each["kind"], type_, tuple(each["dst"]) if each["kind"] == "legal" else None)
        for document, each in test["documents"].items()
    }
    shapes, flags = (tuple(test["shape"]["values"]),), (test["special_zero"],)
    step = Step(type_, tuple(test["src"]["dims"]), shapes, flags, expect, bits=contents.get("bits"))
    place = Place(f"{rule}.json", 1)
    return Case(test["case"], place.path, rule, (step,), place, title=test["title"], start=contents["seed"])


def read_rows(folder: Path) -> Iterator[Row]:
    """Make the rows again that a folder holds. The name of a file is the rule of its cases."""
    for path in folder.glob("*.json"):
        for test in json.loads(path.read_bytes()).get("tests", ()):
            case, shape_type = case_of(test, path.stem), test["shape"]["type"]
            for each in test["rows"]:
                operation = PLAN.suite.spec.operations[each["operation"]]
                yield row_of(case, operation, each["shape_passed_as"], shape_type, COMPILED)._replace(id=each["id"])


def misfits(folder: Path) -> list[str]:
    """The files that do not fit the schema."""
    fits = jsonschema.Draft202012Validator(schema_of("vectors")).is_valid
    return [
        path.name
        for path in folder.glob("*.json")
        if path.name != "schema.json" and not fits(json.loads(path.read_bytes()))
    ]


def facts_of(row: Row) -> Any:
    """Everything about a row that a run sees."""
    (step,) = row.steps
    due = dict(row.case.steps[0].expect)
    expected = {document: due.get(document, due.get("*")) for document in row.documents}
    case = (row.case.id, row.case.rule, row.case.heading, row.operation, row.type, row.shape_type, row.shape_passed_as)
    lies = step.shape_step, step.shape_offset
    call = (step.graph, step.src_spec, step.shapes, step.may_overwrite, step.large, lies, step.meanings)
    return *case, row.facets, *call, {name: each and (each.kind, each.dims) for name, each in expected.items()}


def assert_true(test: Any, rows: Sequence[Row]) -> None:
    """Assert that a test says what its rows hold: contents, documents and known faults."""
    call, contents = rows[0].case.steps[0], test["contents"]
    elements = patterns(rows[0].steps[0].src_spec).tobytes()
    said: dict[str, Any] = {}
    for row in rows:
        for meaning, documents in row.steps[0].meanings:
            limit = {} if meaning.max_length is None else {"max_length": meaning.max_length}
            dst = None if meaning.dst is None else [*meaning.dst]
            said |= {name: {"kind": meaning.kind, "dst": dst, "rules": [*meaning.rules], **limit} for name in documents}
    answers = [each["dst"] for each in said.values() if each["kind"] == "legal"]
    legal = [PlainCall(test["src"]["type"], call.src, call.shapes[0], call.special_zero[0], (*dst,)) for dst in answers]
    assert test["documents"] == said
    assert test["known_faults"] == [
        fault.id for known in legal[:1] for fault in KNOWN.of_legal_call(known) if not fault.facets
    ]
    assert contents.get("bytes", elements.hex()) == elements.hex()
    assert contents.get("sha256", "") in ("", hashlib.sha256(elements).hexdigest())


def test_the_index_names_each_file(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_bytes())
    assert index["suite_digest"] == PLAN.suite.digest
    assert (folder / "schema.json").read_bytes() == (find_spec_folder() / "schema" / "vectors.json").read_bytes()
    others = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "index.json"}
    assert {name: each["sha256"] for name, each in index["files"].items()} == {
        name: hashlib.sha256(content).hexdigest() for name, content in others.items()
    }
    for test in written_in(folder):
        assert {*test["known_faults"]} <= {*index["known_faults"]}
        assert {rule for each in test["documents"].values() for rule in each["rules"]} <= {*index["rules"]}
        assert {*test["documents"]} <= {*index["documents"]}


@pytest.mark.slow
def test_the_rows_read_are_the_rows_written(tmp_path: Path) -> None:
    write_vectors(PLAN.suite, EVERY_31ST, tmp_path)
    assert misfits(tmp_path) == []
    own = {row.id: row for group in EVERY_31ST for row in group.rows}
    found = [*read_rows(tmp_path)]
    assert sorted(own) == sorted(row.id for row in found)
    assert [row.id for row in found if facts_of(row) != facts_of(own[row.id])] == []
    for test in written_in(tmp_path):
        assert_true(test, [own[row["id"]] for row in test["rows"]])


def test_the_command_says_how_many_tests_it_wrote(cli: Cli, tmp_path: Path) -> None:
    words = ("export", "json", "--suite", write_suite(tmp_path), "--out", tmp_path / "out")
    assert "wrote 92 tests" in cli(*words).expect(0).out


@pytest.mark.slow
@in_cpp
def test_a_program_in_cpp_makes_the_same_elements(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "dump.cpp").write_text(DUMP, "utf-8")
    subprocess.run(f"g++ {STRICT} -O1 -I {EXAMPLE} dump.cpp -o dump".split(), cwd=tmp_path, check=True, timeout=120)
    contents = {test["id"]: test["contents"] for test in written_in(folder)}
    documents = {operation.documents[0] for operation in PLAN.suite.spec.operations.values()}
    with subprocess.Popen([tmp_path / "dump", folder, *documents], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        for line in program.stdout:
            name, size = line.decode().split()
            elements, due = program.stdout.read(int(size)), contents.pop(name)
            assert ("bytes" in due and due["bytes"] == elements.hex()) or (
                due["sha256"] == hashlib.sha256(elements).hexdigest()
            )
    assert program.returncode == 0
    assert not contents


@pytest.mark.slow
@pytest.mark.exhaustive
@in_cpp
def test_the_example_passes_and_its_planted_mistakes_fail(tmp_path: Path) -> None:
    """One program, which asks the environment for the mistake."""
    tested = [group for group in FEWER_ELEMENTS if (group.rows[0].type, group.rows[0].shape_type) == ("f32", "s64")]
    write_vectors(PLAN.suite, tested, tmp_path)
    planted = '-DPLANTED=std::atoi(std::getenv("PLANTED"))'
    build = f"g++ {STRICT} {EXAMPLE / 'reshape_test.cpp'} -lgtest -lgtest_main -o {tmp_path / 'test'}"
    subprocess.run([*build.split(), planted], check=True, timeout=120)
    said = [
        "[  PASSED  ]", "factors_of_one_in_64_bits_f32_s64", "literal_zero_in_front_of_infer_f32_s64",
        "edge_patterns_of_f32_flatten_f32_s64",
    ]  # fmt: skip
    for number, words in enumerate(said):
        variables = {**os.environ, "RESHAPE_VECTORS": str(tmp_path), "PLANTED": str(number)}
        done = subprocess.run(
            [tmp_path / "test"], env=variables, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == bool(number)
        assert words in done.stdout
