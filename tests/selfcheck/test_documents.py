"""Documents are cut into statements, and every wrong pointer in spec/ is a problem."""

import dataclasses
import hashlib
import random
import re
import subprocess
from pathlib import Path

import pytest

from conformance import model
from conformance.selfcheck import documents
from conformance.selfcheck.statements import _RULER, statements

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
MOST_WORDS = 11
"""A pointer has at most ten words. Those of two pointers may touch, but are no passage of a document."""


def texts(text: str) -> list[str]:
    return [statement.text for statement in statements(text)]


def spans(text: str) -> list[tuple[int, int, int, int]]:
    return [statement[:4] for statement in statements(text)]


def ruler(line: str) -> bool:
    return _RULER.fullmatch(line.strip()) is not None


# ── cutting ───────────────────────────────────────────────────────────────────────────────────────
CUT = {
    "a paragraph, at the ends of sentences": (
        "One thing. Another\nthing! A third?\n", ["One thing.", "Another thing!", "A third?"]),
    "the halves of a sentence at a semicolon": (
        "if false, literal; if true,\ncopied.", ["if false, literal;", "if true, copied."]),
    **{
        f"a dot inside {text!r}": (text, [text])
        for text in (
            "from the left(i.e. shape[0]) to the right", "at most 1.5 times", "see data.shape and file.txt here",
            "as e.g. here",
        )
    },
    "marks that close a quotation or emphasis stay with their sentence": (
        'of type *T*. **Required.** "Yes." No.', ["of type *T*.", "**Required.**", '"Yes."', "No."]),
    "each item of a list, whatever its bullet": (
        "* one\n  goes on\n  * **Key**: value\n- three\n• four. And five.\n1. six\n",
        ["one goes on", "**Key**: value", "three", "four.", "And five.", "six"]),
    "a bold word or -1 at the beginning of a line is no bullet": (
        "lengths are\n-1 or\n**bold** too", ["lengths are -1 or **bold** too"]),
    "headings of both kinds, without their rulers": (
        "# One {#one}\ntext\n\n---\nTwo\n---\n\nThree\n=====\ntext", ["One {#one}", "text", "Two", "Three", "text"]),
    "each directive, but no empty comment": (
        ".. SPDX: x\n..\n.. include:: y\n\ntext", [".. SPDX: x", ".. include:: y", "text"]),
    "a row of a simple table, and no text after the table": (
        "== ===\nA  B\n== ===\n0  one. Two.\n1  x\n== ===\n\nOne. Two.\n",
        ["A B", "0 one. Two.", "1 x", "One.", "Two."]),
    **{f"blanks and rulers in {text!r}": (text, []) for text in ("", "\n\n", "   \n\t\n", "----\n====", "..")},
}  # fmt: skip


@pytest.mark.parametrize("what", CUT)
def test_a_text_is_cut_into_statements(what: str) -> None:
    text, wanted = CUT[what]
    assert texts(text) == wanted


def test_a_sentence_over_two_lines_has_both_ends() -> None:
    assert spans("One thing. Another\n  thing.\n") == [(1, 1, 1, 11), (1, 12, 2, 9)]


def test_a_row_of_a_grid_table_is_one_statement_over_its_lines() -> None:
    ruler, head = "+----+-----+\n", "+====+=====+\n"
    table = f"{ruler}| A  | B   |\n{head}| |x||one. |\n|    |Two. |\n{ruler}| y  | z   |\n{ruler}"
    assert texts(table) == ["A | B", "|x| | one. Two.", "y | z"]
    assert spans(table) == [(2, 1, 2, 13), (4, 1, 5, 13), (7, 1, 7, 13)]


def each_character_is_in_exactly_one_statement(text: str) -> None:
    cut = statements(text)
    for line, content in enumerate(text.splitlines(), 1):
        for column, character in enumerate(content, 1):
            if not character.isspace() and not ruler(content):
                holders = [statement for statement in cut if statement.holds(line, column)]
                assert len(holders) == 1, (text, line, column)


def test_any_text_is_cut_without_loss_overlap_or_error() -> None:
    pieces = [
        "word", "x. ", "i.e. ", "; ", "\n", "\n\n", "* ", "- ", "• ", "| a | b |", "+--+--+", "== ==", "---", "# ",
    ]  # fmt: skip
    pieces += [".. ", "..", "  ", "|", "é", "\t", "\r\n", "\u2028", "1. ", "**b.** ", "==="]
    source = random.Random(5)
    for _ in range(2000):
        each_character_is_in_exactly_one_statement("".join(source.choices(pieces, k=source.randrange(30))))


# ── verifying made-up documents ───────────────────────────────────────────────────────────────────
TEXT = "Heading\n=======\n\nLengths are kept. Types are kept too.\n"


def made_up(text: bytes = TEXT.encode()) -> model.Spec:
    """A spec of one document, one rule and one finding that cover all of TEXT."""
    prose = model.Prose(model.Pointer("one", 1, "Heading"), "heading", model.Place("spec/sources.yaml", 9))
    place = model.Place("spec/sources.yaml", 3)
    digest = hashlib.sha256(text).hexdigest()
    document = model.Document("one", "Op", "One", "Edition 1", None, "one.txt", digest, 4, 3, (prose,), place)
    rule = model.Rule(
        id="lengths", level="must", sentence="Lengths are kept.", stated=(model.Pointer("one", 4, "Lengths are"),),
        decided_for={}, documents=frozenset({"one"}), because=None, requires=None, where=None, gives=None, ensures=None,
        when=None, implied=False, place=model.Place("spec/rules.yaml", 5),
    )  # fmt: skip
    finding = model.Finding(
        "types", "silence", "About types.", (model.Pointer("one", 4, "Types are"),), ("a",), "b", None, (), None,
        model.Place("spec/findings.yaml", 7), "misleads",
    )  # fmt: skip
    return model.Spec({"one": document}, {}, {"lengths": rule}, {"types": finding}, "")


def verify(tmp_path: Path, spec: model.Spec, text: bytes = TEXT.encode(), file: str = "one.txt") -> list[str]:
    (tmp_path / file).write_bytes(text)
    problems, _ = documents.verify_documents(spec, tmp_path)
    return [str(problem) for problem in problems]


def with_document(spec: model.Spec, name: str, **changes: object) -> model.Spec:
    changed = dataclasses.replace(spec.documents[name], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(spec, documents={**spec.documents, name: changed})


def with_stated(spec: model.Spec, name: str, *stated: model.Pointer) -> model.Spec:
    changed = dataclasses.replace(spec.rules[name], stated=stated)
    return dataclasses.replace(spec, rules={**spec.rules, name: changed})


COVERED = {
    "as it is": (TEXT, "one.txt"),
    "other white space between words": (TEXT.replace("Lengths are", "Lengths \t are"), "one.txt"),
    "another name, found by its digest": (TEXT, "renamed.md"),
}


@pytest.mark.parametrize("what", COVERED)
def test_a_covered_document_has_no_problem(tmp_path: Path, what: str) -> None:
    """The digest counts more than the name, which another file may have."""
    text, file = COVERED[what]
    (tmp_path / "one.txt").write_text("something else", encoding="utf-8")
    assert verify(tmp_path, made_up(text.encode()), text.encode(), file) == []


def test_coverage_says_what_points_at_each_statement(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(TEXT, encoding="utf-8")
    _, coverage = documents.verify_documents(made_up(), tmp_path)
    one = coverage["one"]
    assert (one.statements, one.by_rule, one.by_finding, one.by_prose, one.uncovered) == (3, 1, 1, 1, 0)


def test_a_statement_without_a_pointer_is_a_problem(tmp_path: Path) -> None:
    (problem,) = verify(tmp_path, dataclasses.replace(made_up(), findings={}))
    assert problem.startswith(
        "spec/sources.yaml:3: one: line 4, 'Types are kept too.': nothing points at this statement"
    )
    assert "prose" in problem


@pytest.mark.parametrize(
    ("line", "words", "what"),
    [
        (1, "Lengths are", "is not on line 1 of one: it is on line 4"),
        (4, "Widths", "nor on any other"),
        (4, "are kept", "is 2 times on line 4 of one: take more words"),
        (4, "kept. Types are", "runs from one statement into the next"),
        (2, "=======", "part of a ruler"),
        (4, "ength", "is not on line 4"),
        (5, "Lengths", "there is no line 5 of one: it has 4 lines"),
        (0, "Lengths", "there is no line 0 of one"),
        (4, "", "is not on line 4"),
    ],
)
def test_a_pointer_at_nothing_is_a_problem_of_its_rule(tmp_path: Path, line: int, words: str, what: str) -> None:
    problems = verify(tmp_path, with_stated(made_up(), "lengths", model.Pointer("one", line, words)))
    assert any(problem.startswith("spec/rules.yaml:5: rule lengths: ") and what in problem for problem in problems), (
        problems
    )


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sha256": "0" * 64}, "sha256 of 'one.txt' is "),
        ({"lines": 5}, "has 4 lines, not 5: set lines to 4"),
        ({"statements": 2}, "has 3 statements, not 2: set statements to 3"),
    ],
)
def test_a_wrong_pin_is_a_problem_of_its_document(tmp_path: Path, changes: dict[str, object], what: str) -> None:
    (problem,) = verify(tmp_path, with_document(made_up(), "one", **changes))
    assert problem.startswith("spec/sources.yaml:3: one: ")
    assert what in problem


def test_a_missing_file_is_a_problem_and_so_is_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "one.txt").mkdir()
    (problem,), coverage = documents.verify_documents(made_up(), tmp_path)
    assert "neither 'one.txt' nor a file of its sha256" in problem.what
    assert not coverage
    (problem,), coverage = documents.verify_documents(made_up(), tmp_path / "none")
    assert "no folder of documents" in problem.what
    assert not coverage
    assert len(documents.verify_documents(dataclasses.replace(made_up(), documents={}), tmp_path / "none")[0]) == 1


@pytest.mark.parametrize(
    ("text", "what"), [(b"Heading \xff\n", "is no UTF-8 text: byte 8 is 0xff"), (b"", "has 0 lines, not 4")]
)
def test_a_document_that_is_spoilt_is_a_problem_and_no_error(tmp_path: Path, text: bytes, what: str) -> None:
    assert any(what in problem for problem in verify(tmp_path, made_up(), text))


# ── verifying the real ones ───────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def seeds() -> Path:
    if not SEEDS.is_dir():
        pytest.skip("the source documents are not here: they lie outside the repository")
    return SEEDS


def finds(spec: model.Spec, folder: Path, place: str, what: str) -> bool:
    problems, _ = documents.verify_documents(spec, folder)
    return any(problem.place.path.endswith(place) and what in problem.what for problem in problems)


def test_every_statement_of_every_document_is_accounted_for(spec: model.Spec, seeds: Path) -> None:
    problems, coverage = documents.verify_documents(spec, seeds)
    assert problems == []
    assert set(coverage) == set(spec.documents)
    assert sum(each.uncovered for each in coverage.values()) == 0
    assert sum(each.statements for each in coverage.values()) > 150


def test_each_character_of_the_documents_is_in_one_statement(spec: model.Spec, seeds: Path) -> None:
    for document in spec.documents.values():
        each_character_is_in_exactly_one_statement((seeds / document.file).read_text(encoding="utf-8"))


def test_a_pointer_that_is_one_line_off_is_found(spec: model.Spec, seeds: Path) -> None:
    for rule in (rule for rule in spec.rules.values() if rule.stated):
        first, *others = rule.stated
        wrong = with_stated(spec, rule.id, first._replace(line=first.line + 1), *others)
        assert finds(wrong, seeds, "rules.yaml", rule.id)


@pytest.mark.slow
def test_no_file_of_the_tree_holds_a_passage_of_a_document(seeds: Path) -> None:
    def runs(text: str) -> set[tuple[str, ...]]:
        words = re.findall("[a-z0-9]+", re.sub("<[^<>]*>", " ", text).lower())
        return set(zip(*(words[start:] for start in range(MOST_WORDS + 1)), strict=False))

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False).stdout.decode()
    if not listed:
        pytest.skip("this tree is no clone")
    passages = set[tuple[str, ...]]().union(*(runs(path.read_text(encoding="utf-8")) for path in seeds.glob("*.txt")))
    assert passages
    for name in listed.split("\0")[:-1]:
        if (ROOT / name).suffix not in (".xz", ".png", ".sig") and (ROOT / name).is_file():
            found = passages & runs((ROOT / name).read_text(encoding="utf-8"))
            assert not found, f"{name}: {' '.join(min(found))}"
