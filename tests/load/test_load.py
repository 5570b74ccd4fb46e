"""Every problem with a specification is reported at once, with path and line; a specification loads whole or not."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.load.cases import load_cases, load_suite
from conformance.load.folders import Folders, digest_of_folders, find_cases_folder, find_folders, find_spec_folder
from conformance.load.spec import SPEC_FILES, load_spec, parse_tensor
from conformance.model import Malformed, Operand, Problem, Spec
from tests.builders import ROOT, TINY, copy_bundled_spec, one_rule, problems_of, write_suite, write_tiny_spec

MUST = TINY["rules"]
ORIGIN = """    origin:
      repository: https://example.org/specification
      path: ops/page.rst
      releases: [v1]
      added: "2022-11-10"
      last_changed: "2022-11-10"
      in_force: {commit: "1856518", date: "2026-04-17"}
"""


def replace_in(file: str, old: str, new: str) -> dict[str, str]:
    """A tiny file with some text replaced."""
    assert TINY[file].count(old) == 1, f"{old!r} occurs {TINY[file].count(old)} times in {file}"
    return {file: TINY[file].replace(old, new)}


def rule_of(level: str, *lines: str) -> dict[str, str]:
    """The file of a rule of another level than `must`."""
    return {"rules": one_rule(*lines).replace("must:", f"{level}:")}


REPLACED = {  # what is no strict YAML is in test_strict_yaml.py
    # name: (file, old text, new text, line of the first problem, words of the message)
    "a duplicate key": (
        "rules", "    stated:\n", "    must: Again.\n    stated:\n", 4,
        "the key 'must' occurs twice, first on line 3; remove one"),
    "an unknown key of a rule": (
        "rules", "requires:", "require:", 6, "unknown key 'require'; did you mean 'requires'?"),
    "an unknown key of a document": (
        "sources", "    licence:", "    license:", 6, "unknown key 'license'; did you mean 'licence'?"),
    "an unknown key of an operation": (
        "operations", "    types: [", "    tipes: [", 5, "unknown key 'tipes'; did you mean 'types'?"),
    "an unknown key of a finding": (
        "findings", "    follows:", "    follow:", 8, "unknown key 'follow'; did you mean 'follows'?"),
    "a key that is like no other": ("findings", "    follows:", "    zzzzzz:", 8, "unknown key 'zzzzzz'; write one of"),
    "a missing key": ("findings", "    follows: Nothing much.\n", "", 2, "missing key 'follows'; add it"),
    "a list where text is wanted": ("rules", "At most one entry of shape is -1.", "[1]", 3, "no string; write our own"),
    "text where a list is wanted": ("rules", "[3, No more than]", "3 No more", 5, "is not [line,"),
    "text where a number is wanted": ("sources", "lines: 9", "lines: nine", 9, "no integer"),
    "a truth where a number is wanted": ("sources", "lines: 9", "lines: true", 9, "true is no integer"),
    "a digest that is too short": ("sources", "0" * 64, "0" * 63, 8, "sha256"),
    "an id that is no kebab": ("rules", "one-infer", "One_Infer", 2, "'One_Infer' is not"),
    "an unknown diagnosis": (
        "rules", "    requires:", "    diagnoses: [wrong volumes]\n    requires:", 6, "did you mean 'wrong volume'?"),
    "an unknown facet": (
        "rules", "    requires:", "    offers: {facets: [declred]}\n    requires:", 6, "'declred' is not a facet"),
    "an unknown rule": ("findings", "[one-infer]", "[one-infre]", 9, "did you mean 'one-infer'?"),
    "an unknown document in stated": ("rules", "only:", "onyl:", 5, "did you mean 'only'?"),
    "an unknown document in a finding": ("findings", "only:", "onyl:", 6, "did you mean 'only'?"),
    "an unknown document of an operation": (
        "operations", "documents: [only]", "documents: [only, onyl]", 3,
        "unknown document 'onyl'; did you mean 'only'?"),
    "an unknown document in names": ("operations", "      only: {src", "      onyl: {src", 14, "did you mean 'only'?"),
    "an unknown operation": (
        "sources", "operation: StaticReshape", "operation: StaticShape", 3,
        "unknown operation 'StaticShape'; did you mean 'StaticReshape'?"),
    "a line past the end": ("rules", "[3, No", "[10, No", 5, "line 10 of only, which by `lines` has 9"),
    "a line past the end in a list": (
        "rules", "[3, No more than]", "[[1, a], [99999999999, b]]", 5, "line 99999999999 of only"),
    "a line past the end in a finding": ("findings", "[4, here]", "[44, here]", 6, "line 44 of only"),
    "a line past the end in prose": (
        "sources", "prose: []", "prose:\n      - {at: [1, a], reason: none}\n      - {at: [10, a], reason: none}", 13,
        "line 10 of only, which by `lines` has 9"),
    "line zero": ("rules", "[3, No", "[0, No", 5, "0"),
    "a pointer without words": ("rules", "[3, No more than]", "[3]", 5, ""),
    "a pointer with a comma in its words": (
        "rules", "No more than", "No more, or less", 5, "[3, 'No more', 'or less'] is not a line and a few words"),
    "a pointer of eleven words": ("rules", "No more than", "a b c d e f g h i j k", 5, ""),
    "a rule that nobody states": (
        "rules", "    stated:\n      only: [3, No more than]\n", "", 2, "a must that no document states"),
    "an unknown kind of finding": ("findings", "kind: silence", "kind: silense", 3, "did you mean 'silence'?"),
    "a shape that is no integer": ("operations", "[s64]", "[s64, f32]", 6, "are integers, and f32 is no integer type"),
    "an attribute that no call has": (
        "operations", "    inputs:", "      axis: {type: s64, range: any, required: true}\n    inputs:", 9,
        "'axis' among the required attributes is not supported"),
    "a shape that is not given": (
        "operations", "      shape: {type", "      special_zero: {type", 7, "has no 'shape' among its attributes; add"),
    "a shape that is given in another way": (
        "operations", "[attribute]", "[runtime]", 8, "'shape' among the required attributes is not supported"),
    "an index that no call has": ("operations", "src: {index: 0", "src: {index: 7", 10, "index 7, and in every call"),
    "an operation without dst": ("operations", "      dst: {", "      out: {", 11, "has no 'dst' among its outputs"),
    "an unknown way to give shape": ("operations", "[attribute]", "[atribute]", 4, "did you mean 'attribute'?"),
}  # fmt: skip
WRONG: dict[str, tuple[dict[str, str], str, str]] = {
    # name: (files, where the first problem is, words of the message)
    "an unknown key of a file": (
        {"rules": MUST + "ruels: []\n"}, "rules.yaml:7", "unknown key 'ruels'; did you mean 'rules'?"),
    "many missing keys": ({"sources": "documents:\n  - id: only\n"}, "sources.yaml:2", "missing key 'title'; add it"),
    "a list where a map is wanted": ({"rules": "- a\n"}, "rules.yaml:1", "is no object"),
    "null alone": ({"rules": "null\n"}, "rules.yaml:1", "the file says null; fill it or delete it"),
    "an empty list": ({"rules": "rules: []\n"}, "rules.yaml:1", "non-empty"),
    "an empty entry": ({"rules": "rules:\n  -\n"}, "rules.yaml:2", "the value is left empty"),
    "an id taken twice": (
        {"rules": MUST + MUST.removeprefix("rules:\n")}, "rules.yaml:7", "the id 'one-infer' is taken by line 2"),
    "an unknown document in decided_for": (
        {"rules": one_rule("decided_for:", "  onyl: Because.")}, "rules.yaml:7", "did you mean 'only'?"),
    "an unknown document in documents": (
        rule_of("silent", "documents:", "  - onyl"), "rules.yaml:7", "did you mean 'only'?"),
    "a document that its operation does not list": (
        {"sources": TINY["sources"] + TINY["sources"].removeprefix("documents:\n").replace("only", "other")},
        "sources.yaml:12", "'other' defines StaticReshape, and the entry of that does not list it"),
    "two documents in force": (
        {"sources": TINY["sources"] + ORIGIN + (TINY["sources"] + ORIGIN)[11:].replace("id: only", "id: other"),
         **replace_in("operations", "documents: [only]", "documents: [only, other]")},
        "sources.yaml:19", "'other' is in force for StaticReshape, and so is 'only'; keep one `in_force`"),
    "no level": (
        {"rules": MUST.replace("    must: At most one entry of shape is -1.\n", "")}, "rules.yaml:2", "exactly one of"),
    "two levels": ({"rules": one_rule("may: Also.")}, "rules.yaml:6", "exactly one of"),
    "a ruling without a reason": (
        rule_of("decided", "requires: special_zero"), "rules.yaml:2", "our ruling without a reason"),
    "documents of a must": (
        {"rules": one_rule("documents: [only]")}, "rules.yaml:2", "`documents` goes with silent and decided"),
    "decided_for of a silence": (
        rule_of("silent", "decided_for:", "  only: So."), "rules.yaml:2", "`decided_for` goes with must and may"),
    "stated and decided": (
        {"rules": one_rule("decided_for:", "  only: So.")}, "rules.yaml:2", "both stated in only and decided for it"),
    "two forms": ({"rules": one_rule("requires: special_zero", "ensures: product(dst) == 1")}, "rules.yaml:2", "takes"),
    "when of a must": ({"rules": one_rule("when: special_zero")}, "rules.yaml:2", "a must rule takes"),
    "requires of a silence": (rule_of("silent", "requires: special_zero"), "rules.yaml:2", "a silent rule takes when"),
    "an expression of a freedom": (
        {"rules": one_rule("requires: special_zero").replace("must:", "may:")}, "rules.yaml:2",
        "a may rule takes no expression"),
    "an expression that is a truth": ({"rules": one_rule("requires: true")}, "rules.yaml:6", "true is no string"),
    "a sentence without a full stop": (
        replace_in("rules", "is -1.", "is -1"), "rules.yaml:3", "is not our own sentence, with a full stop at the end"),
    "where without gives": ({"rules": one_rule("where: d == 0")}, "rules.yaml:2", "'gives' is needed beside 'where'"),
    "changed factors": ({"factors": "factors: {}\n"}, "factors.yaml", "is not read, as only the bundled"),
    "an expression out of the language": (
        {"rules": one_rule("requires: src.x == 1")}, "rules.yaml:6", "'src.x' is not allowed"),
    "an example that lacks its flag": (
        {"findings": TINY["findings"] + "    example: {src: [1], shape: [1]}\n"}, "findings.yaml:10", "'special_zero'"),
    **{
        name: (replace_in(file, old, new), f"{file}.yaml:{line}", words)
        for name, (file, old, new, line, words) in REPLACED.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_problem_with_the_specification_has_path_and_line(tmp_path: Path, name: str) -> None:
    files, where, words = WRONG[name]
    problems = problems_of(write_tiny_spec(tmp_path, **files))
    assert problems, "nothing was found"
    said = [problem.what for problem in problems if str(problem.place) == f"spec/{where}"]
    assert any(words in what for what in said), problems
    assert str(problems[0].place) == f"spec/{where}" or any(p.what.startswith("missing key") for p in problems)
    assert len(set(problems)) == len(problems), "said twice"
    assert all(len(str(problem)) < 400 for problem in problems)


def test_a_misspelt_document_is_the_only_problem(tmp_path: Path) -> None:
    (problem,) = problems_of(write_tiny_spec(tmp_path, **replace_in("rules", "only:", "onyl:")))
    assert str(problem) == "spec/rules.yaml:5: unknown document 'onyl'; did you mean 'only'?"


def test_a_copy_of_the_bundled_specification_equals_it(tmp_path: Path) -> None:
    assert problems_of(write_tiny_spec(tmp_path)) == ()
    (tmp_path / "copy").mkdir()
    copy, original = load_spec(copy_bundled_spec(tmp_path / "copy")), load_spec()
    assert copy.digest == original.digest
    assert copy.rules == original.rules
    assert copy == original


def test_problems_of_every_file_are_said_at_once(tmp_path: Path) -> None:
    files = {file: TINY[file] + "x: y\n" for file in SPEC_FILES}
    paths = [problem.place.path for problem in problems_of(write_tiny_spec(tmp_path, **files))]
    assert paths == [f"spec/{file}.yaml" for file in SPEC_FILES]
    files = replace_in("findings", "[one-infer]", "[a, b]") | replace_in("rules", "only:", "onyl:")
    files |= replace_in("sources", "operation: StaticReshape", "operation: X")
    where = {str(problem.place) for problem in problems_of(write_tiny_spec(tmp_path, **files))}
    assert where >= {"spec/findings.yaml:9", "spec/rules.yaml:5", "spec/sources.yaml:3"}


SPOILS: dict[str, tuple[Callable[[Path, bytes], object], str]] = {
    "missing": (lambda path, _: None, "No such file"),
    "folder": (lambda path, _: path.mkdir(), "directory"),
    "loop": (lambda path, _: path.symlink_to(path), "link"),
    "latin": (lambda path, content: path.write_bytes(content + b"# caf\xe9\n"), "not UTF-8"),
    "nul": (lambda path, content: path.write_bytes(content + b"\0"), "not allowed"),
}


@pytest.mark.parametrize("file", SPEC_FILES)
@pytest.mark.parametrize("spoil", SPOILS)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, file: str, spoil: str) -> None:
    path = write_tiny_spec(tmp_path) / f"{file}.yaml"
    content = path.read_bytes()
    path.unlink()
    act, words = SPOILS[spoil]
    act(path, content)
    (problem,) = problems_of(path.parent)
    lines = content.count(b"\n") + 1
    place = f"spec/{file}.yaml:{lines}: " if spoil in ("latin", "nul") else f"spec/{file}.yaml: "
    assert str(problem).startswith(place)
    assert words in problem.what


@pytest.mark.parametrize("name", ["nowhere", "spec/rules.yaml"])
def test_a_missing_folder_is_named(tmp_path: Path, name: str) -> None:
    write_tiny_spec(tmp_path)
    (problem,) = problems_of(tmp_path / name)
    assert problem.what.startswith("is not a folder; ")
    assert problem.place.path == str(tmp_path / name)


def test_the_working_directory_has_a_name_in_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write_tiny_spec(tmp_path, rules="rules: 1\n"))
    (problem,) = problems_of(Path())
    assert problem.place == ("spec/rules.yaml", 1)


def test_a_byte_order_mark_changes_nothing_but_the_digest(tmp_path: Path) -> None:
    folder = write_tiny_spec(tmp_path)
    before = load_spec(folder)
    path = folder / "rules.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    after = load_spec(folder)
    assert after.rules == before.rules
    assert after.digest != before.digest


def test_the_digest_knows_every_byte_and_name(tmp_path: Path) -> None:
    folder = write_tiny_spec(tmp_path)
    first = digest_of_folders([folder])
    assert digest_of_folders([folder]) == first
    (folder / "rules.yaml").write_text(MUST + "\n", encoding="utf-8")
    second = digest_of_folders([folder])
    (folder / "rules.yaml").rename(folder / "ruels.yaml")
    assert len({first, second, digest_of_folders([folder])}) == 3


def spoil_text(text: str, rng: random.Random) -> str:
    """A file with one slip of the hand in it."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines))

    line, rest = lines[at], lines[at + 1 :]
    value = rng.choice(
        ["1", "true", "null", "[]", "{}", "x", "[[1]]", "{a: 1}", "-", "''", "9" * 39, "[null]", "[1, a]"]
    )
    other = re.sub(r"(?<=: ).*|(?<=- ).*", value, line.rstrip(), count=1) + "\n"
    slips = [
        [],  # dropped
        [line, line],
        [" " + line],
        [line[: rng.randrange(len(line))]],
        *[[other]] * 3,
        [re.sub(r"[a-z]", "x", line, count=1)],
    ]
    return "".join([*lines[:at], *rng.choice(slips), *rest])


def known_place(problem: Problem, folder: Path) -> bool:
    path = folder.parent / problem.place.path
    return path.is_file() and 1 <= problem.place.line <= len(path.read_text(encoding="utf-8").splitlines()) + 1


@pytest.mark.slow
@pytest.mark.parametrize("slips", [60, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
@pytest.mark.parametrize("file", SPEC_FILES)
def test_no_slip_of_the_hand_ends_in_a_traceback(tmp_path: Path, file: str, slips: int) -> None:
    rng = random.Random(file)
    refused = 0
    folder = write_tiny_spec(tmp_path)
    for _ in range(slips):
        (folder / f"{file}.yaml").write_text(spoil_text(TINY[file], rng), encoding="utf-8", newline="")
        problems = problems_of(folder)
        assert all(known_place(problem, folder) for problem in problems), problems
        refused += bool(problems)
    assert refused > slips // 2


def test_malformed_carries_every_problem_and_reads_as_lines(tmp_path: Path) -> None:
    with pytest.raises(Malformed) as malformed:
        load_spec(write_tiny_spec(tmp_path, rules="rules: yes\n", findings=""))
    assert str(malformed.value).splitlines() == [str(problem) for problem in malformed.value.problems]
    assert len(malformed.value.problems) == 2


@pytest.mark.parametrize("file", SPEC_FILES)
def test_every_file_names_its_schema_in_its_first_line(file: str) -> None:
    first = (find_spec_folder() / f"{file}.yaml").read_text(encoding="utf-8").partition("\n")[0]
    assert first == f"# yaml-language-server: $schema=schema/{file}.json"
    assert (find_spec_folder() / "schema" / f"{file}.json").is_file()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("T[2, 3]", ("T", (2, 3))), ("f32[]", ("f32", ())), ("bf16[ 0 ]", ("bf16", (0,))),
        (f"s8[{2**63}]", ("s8", (2**63,))),
        *((text, None) for text in ("T", "[2]", "T[2,]", "T[,]", "T[-1]", "T[2 3]", "T[x]", "T[\u0662]")),
        *((text, None) for text in (f"T[{'1' * 5000}]", "T[2] ", "T[2]\n", "")),
    ],
)  # fmt: skip
def test_a_tensor_is_written_as_a_type_and_lengths(text: str, want: object) -> None:
    assert parse_tensor(text) == want


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────
CASE = """about: One.
cases:
  - id: stays
    rule: one-infer
    src: T[2, 3]
    shape: [2, 3]
    special_zero: false
    expect: T[2, 3]
"""
WRONG_CASES: dict[str, tuple[str, str, int, str]] = {
    # name: (old text, new text, line, words of the message)
    "an id twice": (CASE[19:], CASE[19:] + CASE[19:], 9, "the id 'stays' is taken by"),
    "no such rule": ("one-infer", "two-infers", 4, "unknown rule 'two-infers'; did you mean 'one-infer'?"),
    "no such document": (
        "expect: T[2, 3]", "expect: {onyl: reject}", 8, "unknown document 'onyl'; did you mean 'only'?"
    ),
    "no src": ("    src: T[2, 3]\n", "", 3, "missing key 'src'; add it"),
    "nothing expected": ("    expect: T[2, 3]\n", "", 3, "missing key 'expect'; add it"),
    "nothing expected of a step": (
        "expect: T[2, 3]", "steps: [{expect: reject}, {bits: edges}]", 8, "missing key 'expect'; add it to the case or"
    ),
    "no src of a step": (
        CASE[CASE.index("    src") :], "    shape: [2]\n    special_zero: false\n    steps: [{expect: reject}]\n", 7,
        "missing key 'src'; add it to the case or to the step",
    ),
    "expected as a whole, with steps": (
        "    expect:", "    steps: [{expect: reject}, {expect: reject}]\n    expect:", 9,
        "a case with steps expects something at each step, not as a whole; move it there",
    ),
    "a type that there is not": ("src: T[2, 3]", "src: f33[2, 3]", 5, "'f33[2, 3]' is no tensor; write a type and"),
    "an answer of another type": ("expect: T[2, 3]", "expect: f32[2, 3]", 8, "'f32[2, 3]' is neither T[…], reject nor"),
    "the id of a drawn case": ("id: stays", "id: drawn-0-24", 3, "the id 'drawn-0-24' is one of those that drawn"),
    "a name in the shape of a step": (
        "    expect: T[2, 3]", "    steps: [{expect: reject}, {shape: [count], expect: reject}]", 8,
        "shape has the name 'count', which is in no `each`; write a length",
    ),
    "a name in a chain": (
        "    expect:", "    chain: [{shape: [count], special_zero: false}]\n    expect:", 8, "shape has the name",
    ),
    "bits of every type": ("    expect:", "    bits: 3f800000\n    expect:", 8, "bits go with one element type"),
    "bits of another width": (
        CASE[CASE.index("    src") :],
        "    src: f32[2]\n    shape: [2]\n    special_zero: false\n    bits: 3f800000 3f80\n    expect: f32[2]\n", 8,
        "a pattern of f32 has 8 digits, and '3f80' has 4",
    ),
    "all patterns of a wide type": (
        CASE[CASE.index("    src") :],
        "    src: f32[2]\n    shape: [2]\n    special_zero: false\n    bits: all\n    expect: f32[2]\n", 8,
        "`bits: all` wants 65536 elements of a 16-bit type",
    ),
    "no such type of shape": ("    expect:", "    shape_type: s65\n    expect:", 8, "unknown type 's65'; did you mean"),
    "no such type of dst": ("    expect:", "    dst_type: f33\n    expect:", 8, "unknown type 'f33'; did you mean 'f3"),
    **{
        f"an attribute {operand}": (
            "    expect:", f"    attributes: {{axis: {{{operand}}}}}\n    expect:", 8, f"axis: {words}",
        )
        for operand, words in (
            ("type: s65, values: 1", "unknown type 's65'; did you mean"),
            ("type: bool, values: []", "0 values of one bool; write one, or type: bool[]"),
            ("type: s64, values: [0, 1]", "2 values of one s64; write one, or type: s64[]"),
            ("type: bool, values: 2", "2 is no bool; correct the value or the type"),
            ("type: s64, values: true", "true is no s64"),
            ("type: u8, values: 256", "256 is no u8"),
            ("type: string, values: 1", "1 is no string"),
            ("type: f32, values: one", '"one" is no f32'),
        )
    },
    "no such input": ("    expect:", "    inputs: {weights: missing}\n    expect:", 8, "unknown key 'weights'"),
}  # fmt: skip


@pytest.fixture
def tiny_spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return load_spec(write_tiny_spec(tmp_path_factory.mktemp("tiny")))


@pytest.mark.parametrize("name", WRONG_CASES)
def test_a_problem_with_a_case_has_path_and_line(tmp_path: Path, tiny_spec: Spec, name: str) -> None:
    old, new, line, words = WRONG_CASES[name]
    assert CASE.count(old) == 1
    (tmp_path / "few.yaml").write_text(CASE, encoding="utf-8")
    assert list(load_cases(tmp_path, tiny_spec)) == ["stays"]
    (tmp_path / "few.yaml").write_text(CASE.replace(old, new), encoding="utf-8")
    with pytest.raises(Malformed) as malformed:
        load_cases(tmp_path, tiny_spec)
    problem = malformed.value.problems[0]
    assert problem.place.line == line, problem
    assert problem.what.startswith(words)


@pytest.mark.parametrize("other", ["more.yml", "more/few.yaml"])
def test_a_message_names_a_file_of_cases_that_nothing_reads(tmp_path: Path, tiny_spec: Spec, other: str) -> None:
    (tmp_path / "more").mkdir()
    for name in ("few.yaml", other):
        (tmp_path / name).write_text(CASE, encoding="utf-8")
    with pytest.raises(Malformed, match=f"the file {other!r} is not read, as only"):
        load_cases(tmp_path, tiny_spec)


@pytest.mark.parametrize("other", ["more.yaml", "rules.yml", "more/rules.yaml"])
@pytest.mark.parametrize("extends", [True, False])
def test_a_message_names_a_file_of_rules_that_nothing_reads(tmp_path: Path, extends: bool, other: str) -> None:
    folder = shutil.copytree(find_spec_folder(), tmp_path / "spec")
    if extends:
        shutil.copytree(ROOT / "examples" / "onnx" / "spec", folder := tmp_path / "onnx")
    with (folder / "rules.yaml").open("a", encoding="utf-8") as rules:
        rules.write("# not the bundled rules, which the tests load once for all\n")
    (folder / "more").mkdir()
    (folder / other).write_text("x", encoding="utf-8")
    with pytest.raises(Malformed, match=f"{folder.name}/{other}: unknown file '{other}'; "):
        load_spec(folder)


@pytest.mark.parametrize("name", ["case", "Cases", "specs"])
def test_a_message_names_a_folder_that_is_misspelt(tmp_path: Path, name: str) -> None:
    suite = write_suite(tmp_path, CASE)
    (suite / name).mkdir()
    find_folders(suite)
    (suite / name / "more.yaml").write_text(CASE, encoding="utf-8")
    with pytest.raises(Malformed, match=f"unknown folder '{name}'; did you mean 'cases'|'spec'"):
        find_folders(suite)


def test_attributes_and_operands_are_read_as_they_are_written(tmp_path: Path, tiny_spec: Spec) -> None:
    more = """    attributes: {shape: {type: "f32[]", values: [2]}, special_zero: {type: s64, values: 1}, axis: missing}
    inputs: {src: missing, extra: 2}
    outputs: {dst: missing}
"""
    (tmp_path / "few.yaml").write_text(CASE + more, encoding="utf-8")
    case = load_cases(tmp_path, tiny_spec)["stays"]
    assert case.attributes == {
        "shape": Operand("f32", (1,), (2,)), "special_zero": Operand("s64", (), (1,)), "axis": None,
    }  # fmt: skip
    assert (case.inputs, case.outputs) == ({"src": 0, "extra": 2}, {"dst": 0})


# ── which document is in force ────────────────────────────────────────────────────────────────────
def test_one_bundled_document_is_in_force() -> None:
    assert [document.id for document in load_spec().documents.values() if document.in_force] == ["static-oneapi"]


# ── the folder of a suite ─────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("parts", [("spec",), ("cases",), ("spec", "cases")])
def test_what_a_suite_lacks_is_bundled(tmp_path: Path, parts: tuple[str, ...]) -> None:
    for part in parts:
        (tmp_path / part).mkdir()
    bundled = Folders(find_spec_folder(), find_cases_folder())
    assert find_folders(tmp_path) == bundled._replace(**{part: tmp_path / part for part in parts})
    assert find_folders(None) == bundled


@pytest.mark.parametrize(("part", "said"), [("spec", "spec: is not a folder"), ("cases", "cases: holds no")])
def test_a_part_of_a_suite_that_is_no_folder_is_named(tmp_path: Path, part: str, said: str) -> None:
    (tmp_path / part).symlink_to("nowhere")
    with pytest.raises(Malformed, match=said):
        load_suite(tmp_path)


@pytest.mark.parametrize("key", ["extends", '"extends"', "'extends'", "extends "])
def test_a_key_extends_in_quotes_or_before_a_blank(tmp_path: Path, key: str) -> None:
    suite = write_suite(tmp_path, f"{key}: bundled\n{CASE}")
    assert load_suite(suite).added == {"stays"}


def test_an_indented_extends_is_named(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, f" extends: bundled\n{CASE}".replace("\n", "\n "))
    with pytest.raises(Malformed, match=r"few0\.yaml:1: says `extends` where it is not looked for; write"):
        load_suite(suite)
