"""Files of others cannot make us wait, fill memory, end in a traceback, or print what a link of theirs points at."""

import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.load.cases import load_cases, load_suite
from conformance.load.locks import LOCK
from conformance.model import Malformed
from conformance.selfcheck import check_cases
from tests.builders import FOUR_CASES, Cli, copy_bundled_spec, some_slow, spare_meetings, spec, write_cases, write_suite

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes, devices and links")
LINUX = sys.platform == "linux"
SECRET = "b3BlbnNzaC1rZXktdjEA"


def case(*lines: str, src: str = "T[2]", shape: str = "[2]") -> str:
    more = "".join(f"\n    {line}" for line in lines)
    head = "about: One.\ncases:\n  - id: it\n    rule: same-volume\n"
    return f'{head}    src: "{src}"\n    shape: {shape}\n    special_zero: false\n    expect: reject{more}\n'


def problems(folder: Path, text: str) -> list[str]:
    """Return the problems of a folder with one file of cases."""
    try:
        load_cases(write_cases(folder, text), spec())
    except Malformed as malformed:
        return [str(problem) for problem in malformed.problems]
    return []


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 64 << 30)


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a file of 64 GiB": sparse,
}  # fmt: skip
WHY = {
    "a pipe": re.compile("it is not a regular file"),
    "a device": re.compile("it is not a regular file|is a symbolic link to another folder"),
    "a folder": re.compile("it is not a regular file|Is a directory|is a folder; name a file"),
    "a file of 64 GiB": re.compile("it has more than 16,777,216 bytes"),
}
WHERE: dict[str, tuple[str, tuple[str, ...]]] = {
    "a file of cases": ("cases/bad.yaml", ("list", "cases", "--suite", "{suite}")),
    "the lock of the ids": (f"cases/{LOCK}", ("check", "--suite", "{suite}")),
    "a file of a specification": ("spec/rules.yaml", ("list", "rules", "--suite", "{suite}")),
    "another file there": ("spec/bad.yaml", ("list", "rules", "--suite", "{suite}")),
    "claims": ("claims.yaml", ("run", "reference", "--suite", "{suite}", "--out", "{out}", "--claims", "{bad}")),
    "waivers": ("waivers.yaml", ("run", "reference", "--suite", "{suite}", "--out", "{out}", "--waivers", "{bad}")),
    "a document": ("sources/page.txt", ("check", "--suite", "{suite}", "--sources", "{sources}")),
}  # fmt: skip


@pytest.fixture
def with_limits(cli: Cli) -> Iterator[Cli]:
    """The command, in this process, which may have 2 GiB more than it holds, and half a minute."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if LINUX else 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + (2 << 30), before[1]))
    alarm = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(30)
    try:
        yield cli
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, alarm)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _stop(*_: object) -> None:
    raise TimeoutError("the command takes more than half a minute")


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("where", WHERE)
def test_what_is_no_file_or_far_too_large_is_named_in_one_line(
    tmp_path: Path, with_limits: Cli, monkeypatch: pytest.MonkeyPatch, where: str, kind: str
) -> None:
    spare_meetings(monkeypatch)
    place, words = WHERE[where]
    write_cases(tmp_path, FOUR_CASES)
    copy_bundled_spec(tmp_path)
    (tmp_path / "sources").mkdir()
    bad = tmp_path / place
    if where == "a document":
        text = (tmp_path / "spec" / "sources.yaml").read_text(encoding="utf-8")
        bad = tmp_path / "sources" / text.partition("file: ")[2].splitlines()[0]
    bad.unlink(missing_ok=True)
    UNREADABLE[kind](bad)
    given = {"suite": tmp_path, "sources": tmp_path / "sources", "bad": bad}
    code, out, err = with_limits(*(word.format(**given, out=tmp_path / "out") for word in words))
    if where == "a document":  # its problem is one of several: other documents are missing too
        assert code == 1
        assert ("neither" if kind == "a folder" else "cannot read its file: ") in out
        assert kind == "a folder" or WHY[kind].search(out), out
        return
    assert (code, out) == (2, ""), (code, out, err)
    line, *others = err.splitlines()
    assert bad.name in line
    assert WHY[kind].search(line), line
    assert not [other for other in others if bad.name not in other]


SECRETS = {
    "a key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}: {SECRET}\n",
    "a mapping": f"password: {SECRET}\n",
    "bytes": f"{SECRET}\xff\n",
    "nearly cases": case().replace("same-volume", SECRET.lower()),
    "wrong cases": case().replace("reject", f"q8[{'9' * 9}]").replace("about: One.", f"about: {SECRET}"),
    "one word": SECRET,
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("where", ["a file of cases", "a file of a specification", "claims", "waivers"])
def test_the_target_of_a_link_to_another_folder_stays_secret(tmp_path: Path, cli: Cli, where: str, secret: str) -> None:
    place, words = WHERE[where]
    write_cases(tmp_path, FOUR_CASES)
    copy_bundled_spec(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id").write_bytes(secret.encode("latin-1"))
    bad = tmp_path / place
    bad.unlink(missing_ok=True)
    bad.symlink_to(tmp_path / "home" / "id")
    given = {"suite": tmp_path, "bad": bad, "out": tmp_path / "out"}
    said = cli(*[word.format(**given) for word in words]).expect(2)
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert "is a symbolic link to another folder" in said.err
    assert bad.name in said.err
    for word in (SECRET, SECRET.lower(), "password", "BEGIN", "999"):
        assert word not in said.err


@pytest.mark.slow
def test_a_linked_lock_or_document_stays_secret(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    spare_meetings(monkeypatch)
    folder = write_cases(tmp_path, FOUR_CASES)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id").write_text(f"{SECRET} {SECRET}2.\n\n{SECRET}\n", encoding="utf-8")
    (folder / LOCK).symlink_to(tmp_path / "home" / "id")
    (tmp_path / "sources").mkdir()
    for document in spec().documents.values():
        (tmp_path / "sources" / document.file).symlink_to(tmp_path / "home" / "id")
    said = cli("check", "--suite", tmp_path, "--sources", tmp_path / "sources").expect(1)
    assert f"cases/{LOCK}: is a symbolic link to another folder" in said.out
    assert "is a symbolic link to another folder and not the text that is pinned" in said.out
    assert SECRET not in said.out + said.err


def test_a_good_file_behind_a_link_is_read(tmp_path: Path, cli: Cli) -> None:
    folder = write_cases(tmp_path, FOUR_CASES)
    (tmp_path / "store").mkdir()
    (folder / "few0.yaml").rename(tmp_path / "store" / "few0.yaml")
    (folder / "few0.yaml").symlink_to(tmp_path / "store" / "few0.yaml")
    cli("list", "cases", "--suite", tmp_path).expect(0, out="flattens")


def test_a_link_within_the_folder_is_explained_like_any_file(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "other.yaml").symlink_to("few0.yaml")
    (tmp_path / "cases" / "few0.yaml").write_text(case().replace("same-volume", "same-volmue"), encoding="utf-8")
    with pytest.raises(Malformed, match="unknown rule 'same-volmue'"):
        load_cases(tmp_path / "cases", spec())


def test_locking_ids_writes_into_no_other_folder(tmp_path: Path) -> None:
    folder = write_cases(tmp_path, FOUR_CASES)
    other = tmp_path / "precious"
    other.write_text("", encoding="utf-8")
    (folder / LOCK).symlink_to(other)
    assert check_cases.lock(load_suite(tmp_path), folder) == 4
    assert other.read_text(encoding="utf-8") == ""
    assert "flattens" in (folder / LOCK).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["x\n::error::y", "::error::y"])
def test_the_name_of_a_suite_does_not_look_like_output(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_suite(Path(name), case().replace("same-volume", "same-volmue"))
    said = cli("check", "--suite", name).expect(1, out="few0.yaml:4: unknown rule")
    assert not [line for line in said.out.splitlines() if line.startswith("::")]


def test_a_waiver_is_not_looked_for_in_the_suite(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path, write_suite(tmp_path / "my")):
        (path / "w.yaml").write_text("waivers: 3\n", encoding="utf-8")
    cli("run", "reference", "--suite", "my", "--waivers", "w.yaml").expect(2, err="conformance: w.yaml:1: ")


TOO_MUCH = {
    "elements": (case(src="T[4000000000]"), "few0.yaml:5: src has 4,000,000,000 elements; write `large: true`"),
    "elements of a step": (
        case("steps: [{src: 'T[3]', expect: reject}, {src: 'T[65536, 65536]'}]").replace("    expect: reject\n", "", 1),
        "few0.yaml:8: src has 4,294,967,296 elements",
    ),
    "elements past all counting": (case(src="T[" + ", ".join(["9" * 30] * 9) + "]"), "more than 2^64 elements"),
    "dims": (case(src=f"T[{', '.join(['1'] * 1001)}]"), "few0.yaml:5: src has 1,001 dims; at most 1,000 are tried"),
    "entries of shape": (case(shape=str([1] * 1001)), "few0.yaml:6: cases.0.shape: 1,001 entries"),
    "steps": (case(f"steps: [{', '.join(['{expect: reject}'] * 1001)}]"), "steps: 1,001 entries"),
    "nodes": (case(f"chain: [{', '.join(['{shape: [1], special_zero: true}'] * 1001)}]"), "chain: 1,001 entries"),
    "declared dims": (case(f"declared: {[1] * 1001}"), "declared: 1,001 entries"),
    "inputs": (case("inputs: {extra: 1000000000000}"), "inputs.extra: 1,000,000,000,000 are too many"),
    "outputs": (case("outputs: {extra: 101}"), "outputs.extra: 101 are too many"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_case_that_is_too_large_gets_one_problem(tmp_path: Path, what: str) -> None:
    text, said = TOO_MUCH[what]
    found = problems(tmp_path, text)
    assert len([line for line in found if said in line]) == 1, found


def test_what_is_just_small_enough_or_said_to_be_large_is_read(tmp_path: Path) -> None:
    for number, text in enumerate(
        (case(src="T[268435456]"), case("large: true", src="T[4000000000]"), case(src="T[0, 99999999999999]"),
         case(src=f"T[{', '.join(['1'] * 1000)}]"), case("outputs: {extra: 100}"))
    ):  # fmt: skip
        (tmp_path / str(number)).mkdir()
        assert problems(tmp_path / str(number), text) == []


_DEEP = 100_000
HOSTILE: dict[str, bytes] = {
    "anchors that double": b"a: &a [x, x]\n" + b"".join(b"k%d: &b%d [*a, *a]\n" % (n, n) for n in range(50)),
    "brackets": b"[" * _DEEP,
    "braces": b"{a: " * _DEEP,
    "dashes": b"- " * _DEEP + b"x",
    "keys in keys": b"? " * _DEEP + b"x",
    "an indent a line": b"".join(b" " * n + b"a:\n" for n in range(2000)),
    "a number": b"about: 1" + b"0" * 100_000,
    "a number with an exponent": b"about: 1e999999999",
    "a length": b"cases: 'T[" + b"9" * 5000 + b"]'",
    "a text": b"about: yes\ncases: " + b"x" * 1_000_000,
    "a key": b"x" * 1_000_000 + b": 1",
    "an anchor": b"about: &" + b"x" * 1_000_000 + b" 1",
    "a tag": b"about: !" + b"x" * 1_000_000 + b" 1",
    "many wrong values": b"cases: [" + b"1, " * 50_000 + b"1]",
    "many empty values": b"cases:\n" + b"  -\n" * 200_000,
    "many keys": b"".join(b"k%d: 1\n" % n for n in range(50_000)),
    "NUL": b"about: a\0b",
    "UTF-16": "about: a\n".encode("utf-16"),
    "UTF-16 without a mark": "about: a\n".encode("utf-16-le"),
    "UTF-32": "about: a\n".encode("utf-32"),
    "no UTF-8": b"about: \xff\xfe\xc0\x80",
    "a directive": b"%TAG ! tag:x,2000:\n%YAML 9.9\n---\nabout: !x a\n",
    "several documents": b"---\n" * 100_000,
}


@pytest.mark.parametrize("name", some_slow(HOSTILE, HOSTILE.keys() - {"many keys"}))
def test_hostile_yaml_is_refused_in_short_lines(tmp_path: Path, with_limits: Cli, name: str) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    (folder / "few0.yaml").write_bytes(HOSTILE[name])
    code, out, err = with_limits("list", "cases", "--suite", tmp_path)
    assert (code, out) == (2, ""), err[-2000:]
    lines = err.splitlines()
    assert 0 < len(lines) < 1100
    assert all("few0.yaml:" in line and len(line) < 500 for line in lines), [line[:300] for line in lines][:5]
