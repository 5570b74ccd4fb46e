"""The commands about the specification, through the public door: exit codes, messages, JSON, and no traceback ever."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.main import main
from conformance.load import spec as load
from conformance.load.folders import cases_folder, spec_folder
from conformance.meaning.domain import FULL, SMALL, TINY, Domain, calls
from conformance.system import terminal

from ..small import Cli

ROOT = Path(terminal.__file__).resolve().parents[2]
DOCUMENTS = ["static-2022", "static-2021", "static-2020", "dynamic-2021", "reshape-2020"]
HELP_CPU = 0.15
MEANING = ["meaning", "--src", "3,4,5", "--shape", "0,-1", "--special-zero", "true"]

_bundled = cache(load.load_spec)


@pytest.fixture
def run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command; the bundled specification is read once."""
    read = load.load_spec
    monkeypatch.setattr(load, "load_spec", lambda folder=None: read(folder) if folder else _bundled())
    return cli


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A copy of the specification that a test may spoil."""
    folder = tmp_path / "spec"
    shutil.copytree(spec_folder(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def answer(run: Cli, *words: str) -> Any:
    said = run(*words, "--json").expect(0, lines=0)
    assert said.out.isascii()
    return said.data


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=env, timeout=60, check=False)


# ── check ─────────────────────────────────────────────────────────────────────────────────────────
def test_check_ends_with_a_summary_and_what_to_type_next(run: Cli) -> None:
    out = run("check").expect(0, lines=0).out
    assert all(name in out for name in DOCUMENTS)
    assert "not verified" in out
    assert "the specification is whole" in out
    assert out.splitlines()[-1].startswith("next: conformance ")


def test_check_holds_the_specification_against_the_documents(run: Cli) -> None:
    sources = ROOT.parent / "shared" / "seeds"
    if not sources.is_dir():
        pytest.skip(f"the five documents are not at {sources}")
    out = run("check", "--sources", sources).expect(0, lines=0).out
    assert out.count("100 %") == 5
    assert all(each["uncovered"] == 0 for each in answer(run, "check", "--sources", str(sources))["coverage"].values())


def test_check_reports_documents_that_are_not_there(run: Cli, tmp_path: Path) -> None:
    run("check", "--sources", tmp_path).expect(1, out=["sources.yaml:", "5 problems"])


def test_check_counts_for_machines(run: Cli) -> None:
    data = answer(run, "check")
    assert data["ok"] is True
    assert data["problems"] == []
    assert data["coverage"] is None
    assert data["summary"]["documents"] == 5
    assert sum(data["summary"]["rules"].values()) == len(answer(run, "list", "rules")["rules"])
    assert sum(data["summary"]["findings"].values()) == len(answer(run, "list", "findings")["findings"])


SPOILED = {
    "unknown-document": ("rules", "static-2022: [", "static-2032: [", "'static-2032'"),
    "unknown-key": ("rules", "    must: ", "    musst: ", "musst"),
    "accidental-boolean": ("rules", "  - id: one-infer", "  - id: yes", "'yes'"),
    "duplicate-key": ("rules", "  - id: one-infer", "  - id: one-infer\n    id: two", "stands twice"),
    "duplicate-id": ("rules", "  - id: one-infer", "  - id: same-volume", "is taken by line"),
    "attribute-access": ("rules", "sum(d == -1 for d in shape) <= 1", "shape.__class__", "not allowed in a contract"),
    "power": ("rules", "sum(d == -1 for d in shape) <= 1", "2 ** 3 == 8", "not allowed in a contract"),
    "unknown-name": ("rules", "sum(d == -1 for d in shape) <= 1", "bias == 1", "unknown name 'bias'"),
    "tab": ("rules", "  - id: one-infer", "\t- id: one-infer", "not YAML"),
    "unclosed": ("rules", "  - id: one-infer", "  - id: [one-infer", "not YAML"),
    "tag": ("sources", "year: 2022", "year: !!str 2022", "the tag"),
    "wrong-type": ("sources", "year: 2022", "year: [2022]", "year"),
    "unknown-operation": ("sources", "operation: StaticReshape", "operation: StaticReshap", "StaticReshap"),
    "unknown-kind": ("findings", "kind: defect", "kind: defekt", "defect"),
    "stray-document": ("operations", "static-2020", "static-2019", "static-2019"),
}


@pytest.mark.parametrize(("file", "old", "new", "said"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_file_is_named_with_its_line(run: Cli, spec: Path, file: str, old: str, new: str, said: str) -> None:
    path = spec / f"{file}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    out = run("check", "--spec", spec).expect(1, lines=0, out=said).out
    assert str(spec) in out.splitlines()[0], "the path can be opened from here"
    problem = run("check", "--spec", spec, "--json").expect(1).data["problems"][0]
    assert Path(problem["path"]).is_file()
    assert problem["line"] >= 1
    code, out, err = run(*MEANING, "--spec", spec)
    assert (code, out) == (2, "")
    assert err.startswith(f"conformance: {spec}")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"null\n", b"[]\n", b"[" * 5000, b"rules: 1\n", b"a: *b\n"])
@pytest.mark.parametrize("file", ["rules", "sources"])
def test_any_content_of_a_file_gets_a_message(run: Cli, spec: Path, file: str, content: bytes) -> None:
    (spec / f"{file}.yaml").write_bytes(content)
    run("check", "--spec", spec).expect(1, lines=0, out=f"{file}.yaml:1: ")


def test_a_missing_file_gets_a_message(run: Cli, spec: Path) -> None:
    (spec / "findings.yaml").unlink()
    run("check", "--spec", spec).expect(1, out="findings.yaml:1: cannot be read")


def test_check_names_the_line_of_a_bad_case(run: Cli, tmp_path: Path) -> None:
    text = """\
about: A 0 in shape copies a dimension.
cases:
  - id: copies-by-index
    rule: zero-copies
    src: T[2, 3, 4]
    shape: [3, 2, 0]
    special_zero: true
    expect: T[3, 2, 5]
"""
    (tmp_path / "zero.yaml").write_text(text, encoding="utf-8")
    run("check", "--cases", tmp_path).expect(1, out=f"{tmp_path}/zero.yaml:3: copies-by-index: expects [3, 2, 5]")
    (tmp_path / "zero.yaml").write_text(text.replace("zero-copies", "zero-copeis"), encoding="utf-8")
    assert f"{tmp_path}/zero.yaml:4: " in run("check", "--cases", tmp_path)[1]
    (tmp_path / "zero.yaml").unlink()
    run("check", "--cases", tmp_path).expect(1, out="holds no *.yaml")


def test_check_locks_the_ids_of_new_cases_only_when_asked(run: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    shutil.copytree(cases_folder(), folder, ignore=shutil.ignore_patterns("__pycache__", "ids.lock"))
    run("check", "--cases", folder).expect(1, out="add --lock to lock it")
    assert not (folder / "ids.lock").exists()
    assert run("check", "--cases", folder, "--lock")[0] == 0
    assert run("check", "--cases", folder)[0] == 0


# ── list ──────────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("what", ["rules", "documents", "operations", "findings"])
def test_list_shows_every_entry_once(run: Cli, what: str) -> None:
    entries = answer(run, "list", what)[what]
    names = [next(iter(each.values())) for each in entries]
    out = run("list", what).expect(0).out
    assert [line.split()[0] for line in out.splitlines()[1 : len(names) + 1]] == names
    assert len(set(names)) == len(names)


def test_list_accepts_one_of_a_kind_and_any_case(run: Cli) -> None:
    assert run("list", "Rule")[1] == run("list", "rules")[1]


def test_list_filters(run: Cli) -> None:
    every = answer(run, "list", "rules")["rules"]
    musts = answer(run, "list", "rules", "--level", "must", "--document", "static-2022")["rules"]
    assert {each["level"] for each in musts} == {"must"}
    assert "zero-meets-infer" not in {each["rule"] for each in musts}
    assert "zero-meets-infer" in {each["rule"] for each in every}
    defects = answer(run, "list", "findings", "--kind", "defect")["findings"]
    assert {each["kind"] for each in defects} == {"defect"}


# ── explain ───────────────────────────────────────────────────────────────────────────────────────
def test_explain_a_rule_says_where_it_is_stated_and_whom_it_binds(run: Cli) -> None:
    out = run("explain", "lower-bound").expect(0, out="all(d >= -1 for d in shape)").out
    assert all(name in out for name in DOCUMENTS)
    assert "our ruling" in out
    assert "line 28" in out


def test_explain_a_finding_works_its_example_out_in_every_document(run: Cli) -> None:
    example = next(each for each in answer(run, "list", "findings")["findings"] if each["example"])
    run("explain", example["finding"]).expect(0, out=["reading 1", "follows", "conformance meaning --src"])
    assert set(example["example"]["meanings"]) == set(DOCUMENTS)


def test_everything_can_be_explained(run: Cli) -> None:
    for what in ("rules", "documents", "operations", "findings"):
        for entry in answer(run, "list", what)[what]:
            name = next(iter(entry.values()))
            out = run("explain", name).expect(0, lines=0).out
            assert out.startswith(name)


def test_explain_overlooks_capitals_and_underscores(run: Cli) -> None:
    assert run("explain", "One_Infer") == run("explain", "one-infer")


# ── meaning ───────────────────────────────────────────────────────────────────────────────────────
def test_meaning_gives_the_answer_in_each_document(run: Cli) -> None:
    data = answer(run, *MEANING)
    assert data["call"] == {"src": [3, 4, 5], "shape": [0, -1], "special_zero": True}
    assert {name: (each["kind"], each["dst"]) for name, each in data["meanings"].items()} == {
        name: ("legal", [3, 20]) for name in DOCUMENTS
    }
    assert run(*MEANING)[1].count("[3, 20]") == 5


def test_meaning_names_broken_rules_with_their_sentence_and_line(run: Cli) -> None:
    words = ("meaning", "--src", "0,3", "--shape", "0,-1", "--special-zero", "false")
    meanings = answer(run, *words)["meanings"]
    assert meanings["static-2021"]["kind"] == "illegal"
    (broken,) = meanings["static-2021"]["because"]
    assert broken["rule"] == "zero-meets-infer"
    assert broken["at"][0]["line"] == 40
    assert meanings["static-2022"]["kind"] == "unspecified"
    assert meanings["static-2022"]["dst"] == [0, None]
    out = run(*words)[1]
    assert broken["sentence"] in out
    assert "line 40" in out
    assert "[0, ?]" in out


@pytest.mark.parametrize(
    "typed",
    ["3,4,5", "3x4x5", "3X4x5", "[3, 4, 5]", "(3,4,5)", "{3;4;5}", "3 4 5", " 3 ,4 , 5 ", "3,4,5,",
     "(3, 4, 5,)", "T[3, 4, 5]", "f32[3,4,5]", "'3,4,5'", "3*4*5", "+3,4,5", "03,4,5"],
)  # fmt: skip
def test_meaning_reads_dims_as_people_write_them(run: Cli, typed: str) -> None:
    assert answer(run, "meaning", "--src", typed, "--shape", "60", "--special-zero", "true")["call"]["src"] == [3, 4, 5]


@pytest.mark.parametrize(
    "words",
    [["--shape", "-1,2"], ["--shape=-1,2"], ["--shape", "-1", "2"], ["--shape", "-1,", "2"],
     ["--shape", "(-1,2)"], ["--shape", "-1 2"], ["--shape=-1,", "2"]],
)  # fmt: skip
def test_meaning_takes_a_leading_minus(run: Cli, words: list[str]) -> None:
    data = answer(run, "meaning", "--src", "3,4", *words, "--special-zero", "false")
    assert data["call"]["shape"] == [-1, 2]
    assert data["meanings"]["static-2022"]["dst"] == [6, 2]


@pytest.mark.parametrize("typed", ["", "()", "[]", " ", "( )", "''"])
def test_meaning_takes_rank_0(run: Cli, typed: str) -> None:
    data = answer(run, "meaning", "--src", typed, "--shape", typed, "--special-zero", "no")
    assert data["call"] == {"src": [], "shape": [], "special_zero": False}
    assert data["meanings"]["static-2022"]["kind"] == "unspecified"


@pytest.mark.parametrize(
    "words",
    [["--special-zero", "True"], ["--special-zero=yes"], ["--special_zero", "1"], ["--special-zero", "ON"],
     ["--special-zero", "'t'"], ["--special-zero"]],
)  # fmt: skip
def test_meaning_takes_any_truth(run: Cli, words: list[str]) -> None:
    assert answer(run, "meaning", "--src", "3", "--shape", "3", *words)["call"]["special_zero"] is True


def test_meaning_takes_the_form_of_the_call(run: Cli) -> None:
    def kinds(*words: str) -> dict[str, str]:
        meanings = answer(run, "meaning", "--src", "3", "--shape", "3", "--special-zero", "true", *words)["meanings"]
        return {name: each["kind"] for name, each in meanings.items()}

    assert set(kinds("--dst-type", "float16").values()) == {"illegal"}
    assert set(kinds("--src-type", "double").values()) == {"unspecified"}
    assert set(kinds("--missing", "special_zero").values()) == {"illegal"}
    assert set(kinds("--missing", "shape").values()) == {"illegal"}
    assert set(kinds("--shape-rank", "2").values()) == {"illegal"}
    assert set(kinds("--declared", "?").values()) == {"legal"}
    assert set(kinds("--declared", "4").values()) == {"illegal"}
    assert set(kinds("--extra-attributes", "mode").values()) == {"unspecified"}
    assert kinds("--document", "static_2022", "--shape-type", "int64") == {"static-2022": "legal"}


def test_meaning_knows_what_an_operation_cannot_express(run: Cli) -> None:
    meanings = answer(run, "meaning", "--src", "0", "--shape", "0,4294967296", "--special-zero", "true")["meanings"]
    assert meanings["dynamic-2021"]["kind"] == "not expressible"
    assert "s32" in meanings["dynamic-2021"]["reason"]
    assert meanings["reshape-2020"]["kind"] != "not expressible"


# ── diff-documents ────────────────────────────────────────────────────────────────────────────────
def test_diff_documents_says_what_was_added_and_shows_it(run: Cli) -> None:
    data = answer(run, "diff-documents", "static-2022", "static-2021")
    changes = {kind: {each["rule"] for each in rules} for kind, rules in data["rules"].items()}
    assert "zero-meets-infer" in changes["added"]
    assert "lower-bound" in changes["reworded in effect"]
    assert changes["dropped"] == set()
    back = answer(run, "diff-documents", "static-2021", "static-2022")
    assert {each["rule"] for each in back["rules"]["dropped"]} == changes["added"]
    run("diff-documents", "static-2022", "static-2021").expect(0, out=data["example"]["command"])


@pytest.mark.parametrize("a", DOCUMENTS)
def test_the_example_of_a_diff_can_be_typed_and_parts_the_documents(run: Cli, a: str) -> None:
    for b in DOCUMENTS:
        example = answer(run, "diff-documents", a, b)["example"]
        if example is None:
            continue
        meanings = answer(run, *shlex.split(example["command"])[1:])["meanings"]
        assert (meanings[a]["kind"], meanings[a]["dst"]) != (meanings[b]["kind"], meanings[b]["dst"])


def test_diff_documents_says_when_no_call_parts_them(run: Cli) -> None:
    run("diff-documents", "static-2020", "static-2021").expect(
        0, out=["no call was found that means something else", "searched"]
    )


def test_diff_documents_of_two_operations_compares_signatures(run: Cli) -> None:
    signature = answer(run, "diff-documents", "static-2021", "dynamic-2021")["signature"]
    assert signature["shape types"] == {"static-2021": ["s64"], "dynamic-2021": ["s32"]}
    assert signature["shape given as"] == {"static-2021": ["attribute"], "dynamic-2021": ["runtime"]}


# ── domain ────────────────────────────────────────────────────────────────────────────────────────
def test_the_full_domain_is_the_one_that_proofs_run_through() -> None:
    assert FULL.size == 873_912


@pytest.mark.parametrize("domain", [SMALL, TINY, Domain(0, 0, 0, 0, 0), Domain(1, 4, 2, 0, 1)], ids=str)
def test_a_domain_holds_each_call_once_the_smallest_first(domain: Domain) -> None:
    found = list(calls(domain))
    assert len(found) == len(set(found)) == domain.size
    sizes = [(len(src) + len(shape), sum(src) + sum(map(abs, shape))) for src, shape, _ in found]
    assert all(a <= b for a, b in pairwise(sizes))
    assert found == list(calls(domain))


def test_a_domain_need_not_be_held_in_memory() -> None:
    assert len(list(islice(calls(FULL), 1000))) == 1000


# ── what a person mistypes ────────────────────────────────────────────────────────────────────────
MISTYPED: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "say what to do"),
    "unknown-command": (["chekc"], "did you mean 'check'"),
    "empty-command": ([""], "unknown command"),
    "no-command": (["numpy", "--jobs", "2"], "to run the suite on a backend, write `conformance run numpy`"),
    "no-command-but-a-file": (["./mine.py:Mine"], "write `conformance run ./mine.py:Mine`"),
    "no-shell": (["completion"], "for example: conformance completion bash"),
    "memory-no-number": (["run", "numpy", "--memory", "x"], "write --memory 2;"),
    "seed-no-number": (["hunt", "numpy", "--seed", "-1"], "write --seed 2;"),
    "max-dim-no-number": (["sweep", "numpy", "--max-dim", "x"], "write --max-dim 2;"),
    "empty-out": (["run", "numpy", "--out", ""], "--out: the name is empty; name a file or a folder"),
    "unknown-rule": (["list", "cases", "--rule", "qqqqqqqqq"], "see `conformance list rules`"),
    "option-first": (["--json", "check"], "conformance check"),
    "unknown-top-option": (["--verison"], "did you mean '--version'"),
    "unknown-option": (["check", "--source", "x"], "did you mean '--sources'"),
    "abbreviated-option": (["list", "rules", "--doc", "static-2022"], "did you mean '--document'"),
    "extra-argument": (["check", "spec"], "unknown argument 'spec'"),
    "no-such-folder": (["check", "--spec", "/no/such/folder"], "does not exist"),
    "a-file-for-a-folder": (["check", "--sources", __file__], "is not a folder"),
    "no-such-sources": (["check", "--sources", "no such"], "does not exist"),
    "no-value": (["check", "--sources"], "a value is missing"),
    "option-twice": (["list", "rules", "--level", "must", "--level", "may"], "given twice"),
    "list-nothing": (["list"], "say what to list"),
    "list-unknown": (["list", "ruels"], "unknown list 'ruels'; did you mean 'rules'"),
    "verify-nothing": (["verify"], "name what to verify"),
    "wrong-filter": (["list", "rules", "--kind", "defect"], "it filters findings"),
    "unknown-level": (["list", "rules", "--level", "shall"], "unknown level 'shall'"),
    "unknown-document": (["list", "rules", "--document", "static2022"], "did you mean 'static-2022'"),
    "explain-nothing": (["explain"], "say what to explain"),
    "explain-empty": (["explain", ""], "say what to explain"),
    "explain-unknown": (["explain", "one-infre"], "did you mean 'one-infer'"),
    "explain-noise": (["explain", "qqqqqqqqq"], "conformance list rules"),
    "explain-long": (["explain", "q" * 10_000], "..."),
    "explain-escape": (["explain", "\x1b[31mred"], "\\x1b"),
    "explain-bidi": (["explain", "\u202eabc"], "\\u202e"),
    "explain-surrogate": (["explain", "\udcff"], "unknown name"),
    "diff-one": (
        ["diff-documents", "static-2022"],
        "the older first; for example: conformance diff-documents static-2021",
    ),
    "diff-unknown": (["diff-documents", "static-2022", "static-2012"], "did you mean"),
    "diff-three": (["diff-documents", "static-2022", "static-2021", "static-2020"], "unknown argument"),
    "meaning-nothing": (["meaning"], "--src is missing; for example: conformance meaning"),
    "meaning-no-flag": (["meaning", "--src", "3", "--shape", "3"], "--special-zero is missing"),
    "src-without-value": (["meaning", "--src", "--shape", "3", "--special-zero", "1"], "--src: a value is missing"),
}  # fmt: skip
MISTYPED |= {
    f"src {typed!r}": (["meaning", "--src", typed, "--shape", "3", "--special-zero", "true"], said)
    for typed, said in {
        "abc": "not a whole number; write for example", "3,,4": "an entry is empty", ",": "a comma without a number",
        "[3,4": "is not closed", "[3,4)": "is not closed", "3.0": "not a whole number", "1e3": "not a whole number",
        "3-4": "not a whole number", "-3": "no tensor has a length below 0", "3, -1": "no tensor has a length below 0",
        "9" * 5000: "does not fit 64 bits", str(2**63): "does not fit 64 bits", ",".join(["1"] * 1001): "at most 1000",
        "3²": "not a whole number", "٣": "not a whole number", "None": "not a whole number",
        "3\x00": "not a whole number",
        "f33[3]": "unknown type", "((3))": "not a whole number", "?": "not a whole number", "x": "an entry is empty",
    }.items()
}  # fmt: skip
MISTYPED |= {
    " ".join(words): (["meaning", "--src", "3", "--shape", "3", "--special-zero", "true", *words], said)
    for words, said in {
        ("--special-zero", "no"): "given twice", ("--src-type", "flot32"): "did you mean 'f32'",
        ("--src-type", ""): "unknown type", ("--shape-rank", "x"): "not a number", ("--shape-rank", "65"): "0 to 64",
        ("--declared", "3,a"): "not a whole number", ("--declared", "-3"): "not below 0",
        ("--missing", "sape"): "'shape'",
        ("--document", "static"): "unknown document", ("--spec", "/dev/null"): "is not a folder",
        ("--special-zeros", "1"): "did you mean '--special-zero'",
    }.items()
}  # fmt: skip
MISTYPED["maybe"] = (["meaning", "--src", "3", "--shape", "3", "--special-zero", "maybe"], "neither true nor false")


@pytest.mark.parametrize(("words", "said"), MISTYPED.values(), ids=[name[:40] for name in MISTYPED])
def test_a_slip_gets_one_line_that_helps(run: Cli, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("conformance: ")
    assert len(err.splitlines()) == 1
    assert said in err
    assert len(err) < 700
    assert all(character.isprintable() for character in err[:-1])


def test_an_error_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(folder: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("conformance.load.spec.load_spec", broken)
    with pytest.raises(ZeroDivisionError):
        main(["list", "rules"])


def test_an_interrupt_ends_quietly(monkeypatch: pytest.MonkeyPatch, run: Cli) -> None:
    def interrupted(folder: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.load.spec.load_spec", interrupted)
    assert run("list", "rules") == (130, "", "conformance: interrupted\n")


# ── as a process ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["help"], ["meaning", "--help"], ["help", "check"], ["--version"]]
)
def test_help_is_on_stdout(run: Cli, words: list[str]) -> None:
    run(*words).expect(0, lines=0, out="conformance")


def test_ways_that_no_backend_tries_are_listed_with_the_backends(run: Cli) -> None:
    listed = {each["backend"]: each for each in run("list", "backends", "--json").expect(0).data["backends"]}
    text = run("list", "backends").expect(0).out
    assert listed["tensorflow"]["not_tried"]
    assert listed["tensorflow-array"]["not_tried"] == []  # stated once for each library
    assert all("; ".join(each["not_tried"]) in text for each in listed.values())


def test_help_imports_nothing_slow_and_takes_no_time() -> None:
    code = (
        "import os, sys\nfrom conformance.cli.main import main\n"
        "assert main(['--help']) == 0\n"
        "slow = {'numpy', 'yaml', 'jinja2', 'jsonschema', 'ml_dtypes', 'pytest'} & set(sys.modules)\n"
        "print('slow:', sorted(slow), 'cpu:', sum(os.times()[:2]))"
    )
    best = 60.0
    for _ in range(3):
        done = python("-c", code)
        assert done.returncode == 0, done.stderr
        *_, last = done.stdout.splitlines()
        assert "slow: []" in last
        best = min(best, float(last.rpartition(" ")[2]))
    assert best < HELP_CPU


def test_jinja2_is_imported_when_a_page_is_written_and_not_before() -> None:
    code = (
        "import sys\nimport conformance.pytest_plugin.hooks, conformance.report.publish, conformance.report.verify\n"
        "from conformance.report import compare_page, diff_report, junit, render, report_page\n"
        "from conformance.cli.main import main\nassert main(['list', 'rules']) == 0\n"
        "print('early:', 'jinja2' in sys.modules)\nrender.render_page('diff.html')"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "early: False"
    assert "UndefinedError" in done.stderr, "a value that a page lacks is an error"


def test_the_module_is_the_command() -> None:
    done = python("-m", "conformance", *MEANING)
    assert (done.returncode, done.stderr) == (0, "")
    assert "[3, 20]" in done.stdout
    assert "\x1b" not in done.stdout
    done = python("-m", "conformance", "explain", "one-infre")
    assert done.returncode == 2
    assert done.stderr == "conformance: unknown name 'one-infre'; did you mean 'one-infer'?\n"


def test_a_terminal_of_few_characters_gets_escapes() -> None:
    done = python("-m", "conformance", "diff-documents", "static-2022", "static-2021", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_a_reader_that_has_enough_is_no_error() -> None:
    script = f"{sys.executable} -m conformance list findings --json | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


# ── the terminal ──────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("text", ["\x1b[2J", "\x07", "\u202e", "\u2066", "\x9b31m", "\r", "\u200b", "\ufeff", "\x00"])
def test_nothing_printable_acts_on_a_terminal(text: str) -> None:
    shown = terminal.printable(f"a{text}b")
    assert shown.isprintable()
    assert shown.startswith("a\\")


def test_colour_is_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text += text

        def flush(self) -> None: ...

    def said() -> str:
        stream: Any = Terminal()
        terminal.say(f"{terminal.paint('bold', 'x')} \x1b[31m", stream)
        return str(stream.text)

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert said() == "\x1b[1mx\x1b[0m \\x1b[31m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert said() == "x \\x1b[31m\n"


def test_columns_line_up_whatever_is_in_them() -> None:
    rows = [("ab", "c"), (terminal.paint("red", "日本"), "d"), ("e\u0301", "f")]
    lines = terminal.plain(terminal.table(rows)).splitlines()
    assert [terminal.columns(line) for line in lines] == [7, 7, 7]
