"""The examples run as their README says, and what a folder adds cannot change what is bundled."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import conformance
from conformance.cli.main import main
from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.load.schema import schema_of
from conformance.load.spec import load_spec
from conformance.model import Malformed
from tests.builders import ROOT, Cli, copy_bundled_spec, some_slow, spare_meetings, spare_planted, spoil
from tests.builders import problems_of as folder_problems

DIALECT = Path(conformance.__file__).parents[1] / "examples" / "dialect"
OPERATION = DIALECT.parent / "operation"
TEMPLATE = DIALECT.parents[1] / "adapters" / "template.py"
WRITTEN = ("acme-2026.txt", "spec/sources.yaml", "spec/rules.yaml", "cases/acme.yaml", "acme.py")
pytestmark = pytest.mark.skipif(not DIALECT.is_dir(), reason="the examples stay in the clone")


@pytest.fixture
def dialect(tmp_path: Path) -> Path:
    """A copy of the example, to be spoilt."""
    return shutil.copytree(DIALECT, tmp_path / "dialect", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture
def private(dialect: Path) -> Path:
    """The example without its specification; its cases are about a bundled rule."""
    file = dialect / "cases" / "acme.yaml"
    spoil(file, "acme-six-entries", "dst-has-shape-rank")
    spoil(file, '{acme-2026: reject, "*": "T[1, 2, 1, 3, 1, 4, 1]"}', "T[1, 2, 1, 3, 1, 4, 1]")
    shutil.rmtree(dialect / "spec")
    return dialect


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def problems_of(dialect: Path) -> list[str]:
    with pytest.raises(Malformed) as malformed:
        load_suite(dialect)
    return [str(problem) for problem in malformed.value.problems]


def test_a_dialect_is_written_in_fewer_than_sixty_lines() -> None:
    assert sum(len((DIALECT / name).read_text(encoding="utf-8").splitlines()) for name in WRITTEN) < 60


@pytest.mark.slow
@pytest.mark.parametrize(("example", "said"), [(DIALECT, ("acme-2026", "100 %")), (OPERATION, "6  of 4 operations")])
def test_an_example_is_whole_and_true_to_its_manual(example: Path, said: str | tuple[str, ...], cli: Cli) -> None:
    done = cli("check", "--suite", example, "--sources", example).expect(0, out=said)
    assert "no text" not in done.out, "the texts of the bundled documents are not looked for"


@pytest.mark.parametrize("example", [DIALECT, OPERATION])
def test_the_keys_that_a_reason_of_prose_names_exist(example: Path) -> None:
    spec = load_spec(example / "spec")
    keys = {
        *schema_of("sources")["properties"]["documents"]["items"]["properties"],
        *spec.operations["Reshape-1"].detail,
    }
    reasons = " ".join(prose.reason for name in spec.added for prose in spec.documents[name].prose)
    named = set(re.findall("`([a-z_]+)`", reasons))
    assert named
    assert named <= keys


@pytest.mark.slow
@pytest.mark.usefixtures("no_reports")
def test_users_can_copy_the_waivers_and_claims_of_the_docs(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare_planted(monkeypatch)
    shown = (DIALECT.parents[1] / "docs" / "ci.md").read_text(encoding="utf-8").split("```yaml\n")[1:]
    blocks = {
        name: block.split("```")[0] for block in shown for name in ("waivers", "operations") if block.startswith(name)
    }
    for name, block in blocks.items():
        (tmp_path / f"{name}.yaml").write_text(block, encoding="utf-8")
    options = ["--waivers", str(tmp_path / "waivers.yaml"), "--claims", str(tmp_path / "operations.yaml")]
    (tmp_path / "mine.py").write_text(TEMPLATE.read_text(encoding="utf-8"), encoding="utf-8")
    part = ["--operation", "StaticReshape", "--type", "f32"]
    words = ["run", f"{tmp_path / 'mine.py'}:Template", *part, "--out", tmp_path / "out"]
    said = cli(*words, "--isolation", "none", *options).expect(0, out="tests waived")
    assert not said.err


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_reports")
def test_the_vendors_backend_conforms_to_the_vendors_manual(tmp_path: Path, cli: Cli) -> None:
    backend = f"{DIALECT / 'acme.py'}:Acme"
    words = ["run", backend, "--suite", DIALECT, "--document", "acme-2026", "--isolation", "none"]
    said = cli(*words, "--out", tmp_path).expect(0).out
    assert "  acme-2026    yes " in said
    assert "added to the bundled suite: acme-2026, 2 cases" in said
    assert re.search(r"note: not counted: \d+ failures outside the target; the report has all", said)
    assert "\nfailures" not in said
    cli("verify", tmp_path, "--suite", DIALECT).expect(0)


@pytest.mark.slow
@pytest.mark.usefixtures("no_reports")
def test_the_reference_conforms_to_all_but_the_dialect(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare_planted(monkeypatch)
    part = ["--operation", "StaticReshape", "--type", "f32"]
    words = ["run", "reference", "--suite", DIALECT, *part, "--json", "--out", tmp_path]
    standings = cli(*words).expect(1).data["standings"]
    assert {s["document"] for s in standings if s["standing"] != "conforms"} == {"acme-2026"}
    rows = {result.row: result for result in read(tmp_path / "results.jsonl").results}
    assert rows["acme-rejects-seven-entries[StaticReshape-f32]"].verdicts["acme-2026"] == "fail"
    assert rows["acme-rejects-seven-entries[StaticReshape-f32]"].verdicts["static-graph-v0.9"] == "pass"


def test_two_documents_part_on_the_added_rule(cli: Cli) -> None:
    said = cli("diff", "static-graph-v0.9", "acme-2026", "--suite", DIALECT).expect(0, out="acme-six-entries")
    command = f"conformance meaning --src 1 --shape=1,1,1,1,1,1,1 --special-zero false --suite {DIALECT}"
    assert command in said.out
    words = shlex.split(command)[1:]
    cli(*words).expect(0, out="acme-six-entries")


def test_like_takes_over_what_a_document_allows(dialect: Path, cli: Cli) -> None:
    differing = cli("diff", "static-graph-v0.9", "acme-2026", "--suite", dialect, "--json").expect(0).data["rules"]
    assert {kind: [each["rule"] for each in rules] for kind, rules in differing.items()} == {
        "added": ["acme-six-entries"], "dropped": [], "same rule, treated otherwise": [],
    }  # fmt: skip
    spoil(dialect / "spec" / "sources.yaml", "like: static", "without: [view-or-copy]\n    like: static")
    rules = load_spec(dialect / "spec").rules
    standings = [rules[name].treatment_in("acme-2026") for name in ("memory-layout", "view-or-copy")]
    assert standings == ["allowed", "not bound"]


def add_longest(dialect: Path) -> None:
    """Add a rule of a largest length to the example."""
    append(
        dialect / "spec" / "rules.yaml",
        "  - id: acme-longest\n    must: A length of dst is at most 65535.\n    stated: {acme-2026: [4, six]}\n"
        '    ensures: "all(n <= 65535 for n in dst)"\n',
    )


def test_a_dialect_may_have_a_largest_length(dialect: Path, cli: Cli) -> None:
    add_longest(dialect)
    call = ("meaning", "--shape=-1", "--special-zero", "true", "--suite", dialect, "--src")
    cli(*call, 65535).expect(0, out="acme-2026          legal")
    cli(*call, 65536).expect(0, out="breaks acme-longest")


@pytest.mark.slow
def test_check_locks_a_case_past_a_largest_length(dialect: Path, cli: Cli) -> None:
    add_longest(dialect)
    append(
        dialect / "cases" / "acme.yaml",
        "  - id: acme-rejects-a-length-of-65536\n    rule: acme-longest\n    src: T[65536]\n    shape: [-1]\n"
        '    special_zero: false\n    expect: {acme-2026: reject, "*": "T[65536]"}\n',
    )
    cli("check", "--suite", dialect, "--lock").expect(0)


def test_the_commands_of_an_explained_case_name_the_folders(cli: Cli) -> None:
    said = cli("explain", "acme-rejects-seven-entries", "--suite", DIALECT).expect(0)
    assert f"conformance run BACKEND --suite {DIALECT} -k acme-rejects-seven-entries" in said.out
    assert f"pytest --adapter BACKEND --conformance-suite={DIALECT} -k acme-rejects" in said.out
    cli("explain", "zero-past-the-rank", "--suite", DIALECT).expect(0, out=f" --suite {DIALECT}\n")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.usefixtures("no_reports")
def test_the_bundled_cases_run_for_the_added_operation(tmp_path: Path, cli: Cli) -> None:
    suite = ["--suite", OPERATION]
    backend = f"{OPERATION / 'acme_reshape.py'}:AcmeReshape"
    cli("run", backend, *suite, "--isolation", "none", "--out", tmp_path).expect(0, out="  acme-reshape-2026  yes ")
    rows = {result.row: result for result in read(tmp_path / "results.jsonl").results}
    assert rows["volume-too-small[AcmeReshape-1-f16-s64]"].verdicts == {"acme-reshape-2026": "pass"}
    assert rows["volume-too-small[StaticReshape-f32]"].verdicts["static-graph-v0.9"] == "not claimed"
    cli("verify", tmp_path, *suite).expect(0)


@pytest.fixture
def types_suite(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The specification of the added operation, with types that no bundled operation has."""
    spec = Path(shutil.copytree(OPERATION / "spec", tmp_path / "spec"))
    spoil(spec / "operations.yaml", "types: [f32, f16]", f"types: {request.param}")
    return tmp_path


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("types_suite", ["[s8, u8, bool]", "[f32, f64]", "[s32, u64]"], indirect=True)
def test_a_specification_of_other_types_is_whole(types_suite: Path, cli: Cli) -> None:
    cli("check", "--suite", types_suite).expect(0, out="the specification is whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    "types_suite", some_slow(("[f32, f64]", "[s8, u8, bool]", "[s32, u64]"), ("[s8, u8, bool]",)), indirect=True
)
def test_an_added_operation_may_have_other_types(types_suite: Path, cli: Cli) -> None:
    words = ["--suite", types_suite, "--isolation", "none", "-k", "AcmeReshape and content.yaml"]
    said = cli("run", f"{OPERATION / 'acme_reshape.py'}:AcmeReshape", *words).expect(4)
    assert re.search(r"^  pass +[0-9]+ rows$", said.out, re.MULTILINE)
    assert "fail" not in said.out


@pytest.mark.slow
def test_of_two_equal_calls_the_one_that_is_yours_is_named_once(private: Path, cli: Cli) -> None:
    call = "src: 'T[2, 3]', shape: [3, 2], special_zero: false, expect: 'T[3, 2]'"
    append(private / "cases" / "acme.yaml", f"  - {{id: mine, rule: literal-lengths, {call}}}\n")
    append(private / "cases" / "acme.yaml", f"  - {{id: another-way, rule: each-call-alone, {call}, times: 9}}\n")
    said = cli("check", "--suite", private, "--lock").expect(1).text
    assert said.count("the same call as") == 1
    assert re.search(r"mine: the same call as swaps-two-lengths \(.*\); drop mine, which is yours", said)


@pytest.mark.slow
def test_a_case_of_your_rule_may_make_the_call_of_a_bundled_case(dialect: Path, cli: Cli) -> None:
    call = "src: 'T[2, 3]', shape: [3, 2], special_zero: false, expect: 'T[3, 2]'"
    append(dialect / "cases" / "acme.yaml", f"  - {{id: mine, rule: acme-six-entries, {call}}}\n")
    cli("check", "--suite", dialect, "--lock").expect(0)
    spoil(dialect / "spec" / "rules.yaml", "<= 6", "<= 9")
    assert "these cases replace the bundled ones" not in cli("check", "--suite", dialect).expect(1).text


@pytest.mark.slow
def test_a_page_names_the_document_that_has_a_line(tmp_path: Path, cli: Cli) -> None:
    cli("explain", "acme-2026", "--suite", DIALECT).expect(0, out="like        static-graph-v0.9")
    cli("publish", tmp_path, "--suite", DIALECT).expect(0)
    page = (tmp_path / "spec" / "acme-2026.html").read_text(encoding="utf-8")
    assert page.index("line 4: “six entries”") < page.index("line 10 of static-graph-v0.9: “Input tensor volume")
    assert "line 10: " not in page
    assert "older releases" not in page


@pytest.mark.slow
def test_a_proof_says_that_only_an_added_document_differs(dialect: Path, cli: Cli) -> None:
    spoil(dialect / "spec" / "rules.yaml", "len(shape) <= 6", "len(shape) != 1")
    said = cli("check", "--prove", "1", "--suite", dialect).expect(1).text
    assert re.search(f"conformance meaning --src \\S+ --shape=\\S+ --special-zero \\w+ --suite {dialect}", said)
    assert "the reference knows only the bundled documents, and answers as each of them says" in said
    assert said.count("not confirmed by z3") <= 4


LEGAL = "  - {id: mine, rule: RULE, src: 'T[2, 35]', shape: [35, 2], special_zero: false, expect: 'T[35, 2]'}"


@pytest.mark.slow
def test_a_legal_call_shows_nothing_of_a_rule_that_only_forbids(private: Path, cli: Cli) -> None:
    own = private / "cases" / "acme.yaml"
    before = own.read_text(encoding="utf-8")
    for rule, code in (("lower-bound", 1), ("literal-lengths", 0)):
        own.write_text(f"{before}{LEGAL.replace('RULE', rule)}\n", encoding="utf-8")
        said = cli("check", "--suite", private, "--lock").expect(code).text
        assert ("cites lower-bound, which only forbids, and the call is legal" in said) == bool(code)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["cases", "spec"])
def test_a_folder_without_extends_is_named_in_one_line(
    request: pytest.FixtureRequest, cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    spare_meetings(monkeypatch)
    suite = request.getfixturevalue("private" if folder == "cases" else "dialect")
    for file in (suite / folder).glob("*.yaml"):
        spoil(file, "extends: bundled\n", "")
    shutil.copytree(suite, other := suite.parent / "other")
    if folder == "cases":  # beside a specification that adds to the bundled one, too
        shutil.copytree(ROOT / "examples" / "dialect" / "spec", other / "spec", dirs_exist_ok=True)
    for each in (suite, other):
        said = cli("check", "--suite", each, "--lock").expect(1).text
        assert said.count("write `extends: bundled` in each file") == 1
        assert "1 problem" in said


@pytest.mark.slow
def test_a_case_of_an_added_folder_is_named_with_the_folder(private: Path, cli: Cli) -> None:
    own, row = f"{private / 'cases' / 'acme.yaml'}:", "acme-takes-six-entries[StaticReshape-f32]"
    words = ("--suite", private)
    assert own in cli("list", "cases", *words).out
    assert own in cli("explain", "acme-takes-six-entries", *words).out
    no = private / "no.py"
    no.write_text(
        "from conformance import FunctionAdapter\nclass No(FunctionAdapter):\n    name, version = 'no', '1'\n"
        "    def reshape(self, src, shape, special_zero): raise ValueError('no')\n"
    )
    failing = cli("run", f"{no}:No", *words, "-k", row, "--isolation", "none").expect(1)
    assert own in failing.text.replace(" ", "")
    assert "cases/zero.yaml:" in cli("list", "cases", *words).out.replace(str(private), "elsewhere/")


def test_private_vectors_need_no_specification(private: Path) -> None:
    assert main(["check", "--suite", str(private)]) == 0
    assert load_suite(private).cases.keys() > load_suite().cases.keys()


def test_a_file_that_only_mentions_extends_adds_to_nothing(private: Path) -> None:
    assert load_suite(private).added
    spoil(private / "cases" / "acme.yaml", "extends: bundled\nabout: ", "# No extends: bundled here.\nabout: ")
    assert not load_suite(private).added


def test_additions_change_no_bundled_document() -> None:
    plain, added = load_spec(), load_spec(DIALECT / "spec")
    for rule in plain.rules.values():
        assert added.rules[rule.id].documents - {"acme-2026"} == rule.documents
        assert added.rules[rule.id].stated == rule.stated
    assert added.digest != plain.digest


def test_a_list_of_one_pointer_is_a_pointer(dialect: Path) -> None:
    before = load_spec(dialect / "spec").rules["acme-six-entries"].stated
    spoil(dialect / "spec" / "rules.yaml", "[4, six entries]", "[[4, six entries]]")
    assert load_spec(dialect / "spec").rules["acme-six-entries"].stated == before != ()


def test_a_silence_without_documents_is_of_the_added_ones(dialect: Path) -> None:
    silence = '  - id: acme-is-silent\n    silent: Everything is open.\n    when: "True"\n'
    append(dialect / "spec" / "rules.yaml", silence)
    assert load_spec(dialect / "spec").rules["acme-is-silent"].documents == {"acme-2026"}


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("spec/rules.yaml", "id: acme-six-entries", "id: one-infer", "is taken by the bundled spec/rules.yaml:"),
        ("spec/sources.yaml", "id: acme-2026", "id: static-graph-v0.9", "is taken by the bundled spec/sources.yaml:"),
        ("cases/acme.yaml", "id: acme-takes-six-entries", "id: copied-zero-keeps-three", "taken by cases/zero.yaml:"),
        ("spec/rules.yaml", "{acme-2026:", "{static-graph-v0.9: [4, the], acme-2026:",
         "would change what 'static-graph-v0.9' means"),
        ("spec/rules.yaml", "extends: bundled\n", "", "says nothing of `extends`"),
        ("spec/rules.yaml", "extends: bundled", "extends: everything", "did you mean 'bundled'|bundled"),
        ("spec/sources.yaml", "like: static-graph-v0.9", "like: statik-graph-v0.9", "did you mean 'static-graph-v0.9'"),
        ("spec/sources.yaml", "    like: static", "    without: [one-infre]\n    like: static", "'one-infer'"),
    ],
)  # fmt: skip
def test_a_slip_in_a_folder_that_adds_gets_a_message(dialect: Path, file: str, old: str, new: str, said: str) -> None:
    spoil(dialect / file, old, new)
    assert any(part in problem for problem in problems_of(dialect) for part in said.split("|"))


@pytest.mark.parametrize("taken", ["static-oneapi", "reshape-spec-v0.7"])
def test_a_taken_id_of_a_document_is_the_one_problem(dialect: Path, cli: Cli, taken: str) -> None:
    file = dialect / "spec" / "sources.yaml"
    spoil(file, "id: acme-2026", f"id: {taken}")
    said = cli("check", "--suite", dialect).expect(1, out=f"{file}:4: the id '{taken}' is taken by the bundled spec/so")
    assert "1 problem; no further check was made" in said.out
    assert f"next: correct {file}:4" in said.out


def test_a_file_that_no_specification_has_gets_a_message(dialect: Path) -> None:
    for before, after in (("rules.yaml", "rule.yaml"), ("rule.yaml", "rules.yml")):
        (dialect / "spec" / before).rename(dialect / "spec" / after)
        assert any("did you mean 'rules.yaml'" in problem for problem in problems_of(dialect))


def test_a_bundled_document_is_like_no_other(tmp_path: Path) -> None:
    folder = copy_bundled_spec(tmp_path)
    head = "  - id: static-spec-v0.9\n"
    spoil(folder / "sources.yaml", head, f"{head}    like: static-graph-v0.9\n")
    assert any("extend the bundled" in str(problem) for problem in folder_problems(folder))
