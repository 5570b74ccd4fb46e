"""The strict reader rejects ambiguous YAML, and each problem names the right line."""

import gc
import random
import time
from pathlib import Path

import pytest

from conformance.load.strict_yaml import Seq, YamlMap, line_of, parse, read
from conformance.model import Place

GOOD = "a: text\nb: [1, true, null]\n"

WRONG = {
    # name: (text, line, words of the message)
    "a duplicate key": ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' occurs twice, first on line 1"),
    "a duplicate key in braces": ("x:\n  - {a: 1,\n     a: 1}\n", 3, "the key 'a' occurs twice, first on line 2"),
    "an anchor": ("a: 1\nb: &x [1]\n", 2, "the anchor &x"),
    "an alias": ("a: 1\nb: *x\n", 2, "the alias *x"),
    "a merge": ("a: 1\n<<: {b: 1}\n", 2, "'<<' is a boolean, a number"),
    "a tag": ("a: 1\nb: !!str 12\n", 2, "the tag 'tag:yaml.org,2002:str'"),
    "a tag that makes objects": ("a: !!python/object/apply:os.system [ls]\n", 1, "the tag 'tag:yaml.org,2002:python"),
    "a byte order mark in the middle": ("a: 1\nb: 2\n\ufeffc: 3\n", 3, "not YAML"),
    "NUL": ("a: 1\n# é\u2603\nb: \0\n", 3, "character '\\x00' is not allowed"),
    "the first control character": ("a: 1\nb: '\x01'\n", 2, "character '\\x01' is not allowed"),
    "the last one before a tab": ("a: 1\nb: '\x08'\n", 2, "character '\\x08' is not allowed"),
    "a control character": ("a: 1\nb: '\x1b[31m'\n", 2, "character '\\x1b' is not allowed"),
    "a lone carriage return": ("a: 1\nb: 2\rc: 3\n", 2, "character '\\r' is not allowed"),
    "a break that editors do not count": ("a: 1\nb: x\u2028y\n", 2, "character '\\u2028' is not allowed"),
    "a tab before a key": ("a:\n\tb: 1\n", 2, "not YAML: a tab where only blanks are allowed; indent with blanks"),
    "a date": ("a: 2027-06-30\n", 1, "'2027-06-30' is a date to some YAML readers; put it in quotes"),
    "a tab for indentation": ("a:\n  b: 1\n\tc: 1\n", 3, "not YAML"),
    "wrong indentation": ("a:\n  b: 1\n c: 2\n", 3, "not YAML"),
    "quotes left open": ('a: 1\nb: "x\nc: 3\n', 4, "(begun on line 2)"),
    "a colon in text": ("a: 1\nb: one: two\n", 2, "or quote text with :*&[]{}"),
    "two documents": ("a: 1\n---\nb: 1\n", 2, "a second document begins here"),
    "another version": ("%YAML 3.0\n---\na: 1\n", 1, "not YAML"),
    "an empty file": ("", 1, "the file is empty"),
    "a file of comments": ("# nothing\n\n# here\n", 1, "the file is empty"),
    "an empty value": ("a: 1\nb:\nc: 2\n", 2, "the value is left empty"),
    "a number as a key": ("a: 1\n2: b\n", 2, "the key '2' is not text"),
    "a list as a key": ("a: 1\n[x]: b\n", 2, "is not text"),
    "a number of a thousand digits": (f"a: 1\nb: {'9' * 1000}\n", 2, "1000 characters, at most 40"),
    "brackets in brackets": ("a: 1\nb: " + "[" * 45 + "]" * 45 + "\n", 2, "nested more than 40 levels"),
    "brackets in brackets without end": ("a: 1\nb:\n" + "[" * 100_000, 3, "nested more than 40 levels"),
    "lines in lines": ("".join(" " * n + "a:\n" for n in range(60)), 41, "nested more than 40 levels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_line(name: str) -> None:
    text, line, words = WRONG[name]
    start = time.process_time()
    _, problems = parse(text, "spec/x.yaml")
    assert problems, "nothing was found"
    assert problems[0].place == Place("spec/x.yaml", line)
    assert words in problems[0].what
    assert "\n" not in str(problems[0])
    assert time.process_time() - start < 2


ACCIDENTS = [
    "y", "Y", "n", "N", "yes", "Yes", "YES", "no", "NO", "on", "On", "ON", "off", "OFF", "True", "TRUE", "False",
    "FALSE", "Null", "NULL", "~", "010", "-0", "0o17", "0x1F", "0b11", "1_000", "+1", "-01", "1:30", "1.5", ".5", "5.",
    "1e3", "1E3", "1e+3", "1.5e-3", "-1.5", "+.5", ".inf", "-.INF", "+.inf", ".nan", ".NaN", "1,000", "1.2.3",
    "0.0", "00", "-00", "2020-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "0001-01-01",
]  # fmt: skip


@pytest.mark.parametrize("text", ACCIDENTS)
def test_ambiguous_plain_text_is_rejected(text: str) -> None:
    for written in (f"x: 1\na: {text}\n", f"x: 1\na: [{text}]\n" if "," not in text else f"x: 1\na: {text}\n"):
        _, problems = parse(written, "x.yaml")
        (problem,) = problems
        assert str(problem).startswith(f"x.yaml:2: {text!r} is a ")
        assert " to some YAML readers; " in problem.what
        assert "put it in quotes" in problem.what


@pytest.mark.parametrize("text", ACCIDENTS)
def test_the_same_text_in_quotes_is_text(text: str) -> None:
    for written in (f"a: '{text}'\n", f'a: "{text}"\n', f"a: |-\n  {text}\n", f"a: >-\n  {text}\n"):
        assert parse(written, "x.yaml") == ({"a": text}, [])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("false", False), ("null", None), ("0", 0), ("-1", -1), ("42", 42),
        ("9223372036854775808", 2**63), ("9" * 40, 10**40 - 1),
        *((text, text) for text in (
            "static-graph-v0.9", "1D tensor", "-1 in shape", "d != 0 and src[i] == 0", "s64", "no more", "yes, it is",
            "a*b & c!", "~x", "é\u2603\U0001f600",
        )),
    ],
)  # fmt: skip
def test_plain_values_are_what_they_look_like(text: str, value: object) -> None:
    content, problems = parse(f"a: {text}\n", "x.yaml")
    assert problems == []
    assert content["a"] == value
    assert type(content["a"]) is type(value)


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert parse("a: " + "[" * 39 + "]" * 39 + "\n", "x.yaml")[1] == []
    assert parse("".join(" " * n + "a:\n" for n in range(39)) + " " * 39 + "a: 1\n", "x.yaml")[1] == []
    assert parse("a: [[1]]\n" + "# [[]]\n" * 300, "x.yaml")[1] == []


def test_every_problem_is_found_and_not_only_the_first() -> None:
    _, problems = parse("a: yes\nb: &x 1\nc: *x\nb: 2\nd: 010\ne: [!t 1\n", "x.yaml")
    assert [problem.place.line for problem in problems] == [1, 2, 3, 4, 5, 6, 7]


def test_every_value_knows_its_line() -> None:
    content, problems = parse("# a comment\na: 1\nb:\n  - x\n  - {c: 1,\n     d: [5,\n    6]}\n", "x.yaml")
    assert problems == []
    assert isinstance(content, YamlMap)
    assert isinstance(content["b"], Seq)
    assert content.lines == {"a": 2, "b": 3}
    assert content["b"].lines == [4, 5]
    assert (content["b"].line, content["b"][1].line) == (4, 5)
    assert line_of(content, ("b", 1, "d", 1)) == 7
    assert line_of(content, ("b", 1, "d")) == 6
    assert line_of(content, ("b", 1, "missing")) == 5
    assert line_of(content, ("b", 9)) == 3
    assert line_of(content, ()) == 2


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_alike_on_every_system(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(f"a: 1{end}b: 2{end}c: yes{end}".encode())
    _, problems = read(path, "x.yaml")
    assert [problem.place.line for problem in problems] == [3]


def test_a_byte_order_mark_in_front_is_allowed(tmp_path: Path) -> None:
    """YAML allows it, some editors write it, and it changes nothing that is read."""
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read(path, "x.yaml") == ({"a": "text", "b": [1, True, None]}, [])
    path.write_bytes(b"\xef\xbb\xbfa: 1\nb: yes\n")
    assert [problem.place.line for problem in read(path, "x.yaml")[1]] == [2]


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"a: 1\nb: \xff\n", 2, "byte 8 is not UTF-8"),
        (b"a: 1\nb: \xe9t\xe9\n", 2, "byte 8 is not UTF-8"),
        (GOOD.encode("utf-16"), 1, "byte 0 is not UTF-8"),
        (b"a: \xed\xa0\x80\n", 1, "byte 3 is not UTF-8"),
        ("é: 1\nb: 1\nc: \0".encode(), 3, "character '\\x00'"),
        (bytes(4096), 1, "character '\\x00'"),
        (b"\x7fELF\x02\x01\x01\n\n", 1, "character '\\x7f'"),
    ],
)
def test_bytes_that_are_no_text_are_rejected(tmp_path: Path, content: bytes, line: int, words: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    value, (problem,) = read(path, "x.yaml")
    assert value is None
    assert problem.place == ("x.yaml", line)
    assert words in problem.what


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    assert str(read(tmp_path / "none.yaml", "none.yaml")[1][0]) == (
        "none.yaml: cannot be read: No such file or directory; check the path"
    )
    assert str(read(tmp_path, "x")[1][0]) == "x: is a folder; name a file"


def test_the_garbage_collector_is_left_as_it_was() -> None:
    parse(GOOD, "x")
    assert gc.isenabled()
    gc.disable()
    try:
        parse("a: [", "x")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_random_text_is_read_or_rejected() -> None:
    rng = random.Random(7)
    alphabet = [
        "a", "b: ", ": ", "\n", "\n", "  ", "- ", "[", "]", "{", "}", ",", "'", '"', "|", ">", "&x ", "*x", "!t ",
    ]  # fmt: skip
    alphabet += [*"?#%@`1~\t\r=é\u2028\ufeff", "true", "---", "...", "<<", "yes"]
    for _ in range(20_000):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(14)))
        content, problems = parse(text, "x.yaml")
        lines = text.count("\n") + 1
        assert all(1 <= problem.place.line <= lines + 1 for problem in problems), repr(text)
        assert content is not None or problems or text.strip(" \n\r-.#").startswith("null"), repr(text)
