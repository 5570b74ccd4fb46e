"""`check-adapter` names what is broken in an adapter; `new-adapter` writes one in which nothing is."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import Bundled, load_adapter, read_bundled_backends
from conformance.cli.main import main
from conformance.isolate.process.launch import ProcessLimits
from conformance.model import Adapter, Outcome
from conformance.model.types import WIDTH
from conformance.plan.memory import volume_of
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep
from conformance.run.call import make_call
from conformance.run.row import run_rows
from tests.builders import Cli, bundled_plan, write_suite
from tests.processes import works

MISBEHAVING = Path(__file__).parents[1] / "misbehaving.py"
HEAD = """
import numpy as np
from conformance.adapter import FunctionAdapter
from conformance.model import Rejected, Unsupported
class Mine(FunctionAdapter):
    name, version = "mine", "1"
    def reshape(self, src, shape, special_zero):
        if special_zero:
            shape = tuple(src.shape[i] if n == 0 else n for i, n in enumerate(shape))
        return np.reshape(src, shape).copy()
"""


def _rows() -> list[Row]:
    """Return the rows of one type that need no gigabytes."""
    return [row for row in bundled_plan().rows if row.type not in ("bf16", "f16") and "large" not in row.facets]


def checks(cli: Cli, backend: str, *options: str) -> tuple[int, list[dict[str, str]]]:
    isolation = () if "--isolation" in options else ("--isolation", "none")
    said = cli("check-adapter", backend, "--json", *isolation, *options)
    return said.code, said.data["checks"]


def to_mend(found: list[dict[str, str]]) -> str:
    return "\n".join(f"{each['check']}: {each['text']}" for each in found if each["word"] == "mend")


def adapter(folder: Path, changes: str) -> str:
    path = folder / "mine.py"
    path.write_text(HEAD + changes)
    return f"{path}:Mine"


def reshape(*lines: str) -> str:
    """Another method of that name, with these lines."""
    return "".join(["    def reshape(self, src, shape, special_zero):\n", *(f"        {line}\n" for line in lines)])


def cannot(condition: str, facet: str) -> str:
    """A method by which some graphs are unsupported."""
    raises = f"if {condition}: raise Unsupported({facet!r})"
    return f"    def compile(self, graph):\n        {raises}\n        return super().compile(graph)\n"


COPIED = "copied = [n == 0 and special_zero and i < src.ndim for i, n in enumerate(shape)]"
ANSWERED = "return np.reshape(src, [src.shape[i] if c else shape[i] for i, c in enumerate(copied)]).copy()"
SOUND = {
    "as it is": "",
    "no runtime shapes, and no claim about strides of shape": (
        "    not_claimed = ('declared', 'form', 'rank:65', 'runtime-shape')\n"
        "    operations = ('StaticReshape', 'Reshape-1')\n"
        + cannot("graph.nodes[0].shape.values is None", "runtime-shape")
    ),
    "no great lengths, which an illegal call has": (
        "    not_claimed = ('declared', 'form', 'rank:65', 'length:2^31')\n"
        + reshape("if max(shape, default=0) >= 1 << 31: raise Unsupported('length:2^31')", COPIED, ANSWERED)
    ),
    "shape of the only type that the operation takes": (
        "    operations = ('DynamicReshape-1',)\n"
        "    def compile(self, graph):\n"
        "        if graph.nodes[0].shape.type != 's32': raise Rejected('compile', 'shape is no s32')\n"
        "        return super().compile(graph)\n" + reshape(COPIED, ANSWERED)
    ),
    "shape of the only type that is claimed": (
        "    not_claimed = ('declared', 'form', 'rank:65', 'shape-type:s64')\n"
        "    operations = ('Reshape-1',)\n"
        + cannot("graph.nodes[0].shape.type != 's32'", "shape-type:s64")
        + reshape(COPIED, ANSWERED)
    ),
    "no layouts, in which some ranks occur first": (
        "    not_claimed = ('declared', 'form', 'rank:65', 'layout')\n"
        + reshape("if not src.flags.c_contiguous: raise Unsupported('layout')", COPIED, ANSWERED)
    ),
}


@pytest.mark.parametrize("what", SOUND)
def test_a_sound_adapter_is_sound(what: str, tmp_path: Path, cli: Cli) -> None:
    code, found = checks(cli, adapter(tmp_path, SOUND[what]))
    assert code == 0, to_mend(found)
    assert {"identity", "claims", "answer", "rejection", "state", "round trip", "restart"} <= {
        f["check"] for f in found
    }


WIDE = "src: 'T[0, 8589934592]', shape: [8589934592, 0], special_zero: false, expect: 'T[8589934592, 0]'"
REJECTED = "src: 'T[4]', shape: [-1, -1], special_zero: false, expect: reject"


@pytest.mark.parametrize(("call", "code"), [(WIDE, 0), (REJECTED, 2)])
def test_a_suite_needs_one_legal_call(tmp_path: Path, cli: Cli, call: str, code: int) -> None:
    """WIDE is no call of DynamicReshape-1, with a shape of s32, which the adapter does not claim."""
    suite = write_suite(tmp_path, f"about: One.\ncases:\n  - {{id: it, rule: one-infer, {call}}}\n")
    mine = adapter(tmp_path, "    operations = ('StaticReshape',)\n")
    said = cli("check-adapter", mine, "--suite", suite, "--isolation", "none").expect(code)
    assert ("has no case with one call that is legal in every document" in said.err) == (code == 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    ["np.resize(src, [n for n in shape if abs(n) < 9])", "np.exp(':')", "src.reshape(np.int32(np.int64(shape)))"],
)
def test_a_product_of_32_bits_is_noted(tmp_path: Path, cli: Cli, answer: str) -> None:
    """A library may answer such a call or fail in it; the adapter is sound either way."""
    wraps = reshape(
        "known = -np.prod(shape) if -1 in shape else np.prod(shape)",
        f"return {answer} if known != src.size and known % 2**32 == src.size else src.reshape(shape)",
    )
    code, found = checks(cli, adapter(tmp_path, wraps), "--isolation", "worker")
    assert code == 0, to_mend(found)
    (note,) = (each for each in found if each["check"] == "volume")
    assert note["word"] == "note"
    assert note["text"].startswith("[2, 3] → [4294967302] has 2^32 elements too many, and came back as ")
    assert note["text"].endswith("keep counts or entries in 32 bits, where both volumes are 6?")


BROKEN = {
    "no version": ("    version = ''\n", "identity: mine has no version"),
    "nothing claimed": ("    operations = ()\n", "claims: no operation is claimed"),
    "no type claimed": ("    not_claimed = ('type',)\n", "claims: no type is claimed that a document lists"),
    "rejections not named": ("    rejections = (OSError,)\n", "[2, 3] → [7] is illegal, and came back as error"),
    "divides by a 0 in shape": (
        reshape("6 % int(-np.prod(shape)) if -1 in shape else 0", "return src.reshape(shape)"),
        "rejection: [2, 3] → [0, -1] is illegal, and came back as error: ZeroDivisionError"),
    "everything answered": (
        reshape("return np.resize(src, [abs(n) for n in shape])"), "rejection: none of 6 illegal calls was rejected"),
    "no array": (reshape("return [1, 2]"), "answer: a legal call came back as error"),
    "converts": (reshape("return src.reshape(shape).astype('f8')"), "answer: the answer's type is f64, src's is f32"),
    "says that it copies zeros": (
        "    answers_special_zero = True\n" + reshape("return src.reshape(shape).copy()"),
        "special_zero: [2, 3] by (0, 3) with special_zero: a legal call came back as rejected"),
    "reads src as it lies": (
        reshape("return (src if src.flags.c_contiguous else src.T).reshape(shape).copy()"),
        "round trip: f16, transposed: the bytes are not src's: strides ignored"),
    "bytes swapped": (
        reshape("return src.copy().view(f'u{src.itemsize}').byteswap().view(src.dtype).reshape(shape)"),
        "the bytes of every element are in the wrong order"),
    "wrong dims": (reshape("return src.reshape(shape).ravel()"), "answer: the answer's dims are [6], due are [3, 2]"),
    "changes src": (
        "    right = reshape\n" + reshape("out = self.right(src, shape, special_zero); src[...] = 0; return out"),
        "src changed: hand the library a copy"),
    "remembers": (
        "    seen = None\n"
        + reshape("out = src.reshape(shape).copy()", "Mine.seen, was = out, Mine.seen",
                  "return out if was is None or was.shape != out.shape else was"),
        "state: "),
    "answers in one memory": (
        "    kept = None\n"
        + reshape("if Mine.kept is None or Mine.kept.nbytes != src.nbytes: Mine.kept = np.empty(src.nbytes, np.uint8)",
                  "Mine.kept[...] = src.reshape(-1).view(np.uint8)",
                  "return Mine.kept.view(src.dtype).reshape(shape)"),
        "state: an answer changed when a later call was made; return a copy of it"),
    "quiets NaNs": (
        reshape("out = src.reshape(shape).copy(); out[np.isnan(out)] = np.nan; return out"),
        "round trip: f32, dense: the bytes are not src's"),
    "quiets NaNs, and takes no layout": (
        "    not_claimed = ('declared', 'form', 'rank:65', 'layout')\n"
        + reshape("out = src.reshape(shape).copy(); out[np.isnan(out)] = np.nan; return out"),
        "round trip: f32, dense: the bytes are not src's"),
    "claims what it does not support": (
        cannot("len(graph.nodes) > 1", "chain"), "claims: chain is claimed, and unsupported"),
    "claims a rank that no array has": ("    not_claimed = ('declared', 'form')\n", "claims: rank:65 is claimed"),
    "another version each time": (
        "    import time\n    def __init__(self): self.version = str(self.time.time_ns())\n",
        "restart: started again it says"),
}  # fmt: skip


def test_a_library_that_changes_bytes_has_a_sound_adapter(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(read_bundled_backends(), "flushing", Bundled("planted", "FlushesSubnormals"))
    said = cli("check-adapter", "flushing", "--isolation", "none").expect(0).text
    assert "note round trip: bf16, dense: the bytes are not src's: subnormals flushed" in said
    assert "`conformance explain CASE --backend flushing` shows without the adapter" in said
    run = cli("check-adapter", "planted:flushes-subnormals", "--isolation", "none")
    run.expect(1, out="DynamicReshape-1, Reshape-1; claims every facet\n")


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_adapter_is_named(what: str, tmp_path: Path, cli: Cli) -> None:
    change, words = BROKEN[what]
    if "operations" in change:
        words = "claims: no operation"
    code, found = checks(cli, adapter(tmp_path, change))
    assert code == 1
    assert words in to_mend(found)


FOLLOWING = {
    "a wrong answer is no state": ("bytes swapped", "mend state"),
    "a changed src is no lost special_zero": ("changes src", "note special_zero"),
    "an error is no count of 32 bits": ("rejections not named", "note volume"),
}


@pytest.mark.parametrize("what", FOLLOWING)
def test_a_fault_is_not_told_again_as_another(what: str, tmp_path: Path, cli: Cli) -> None:
    fault, words = FOLLOWING[what]
    assert words not in cli("check-adapter", adapter(tmp_path, BROKEN[fault][0])).expect(1).out


@pytest.mark.slow
def test_a_lost_special_zero_is_noted(tmp_path: Path, cli: Cli) -> None:
    said = cli("check-adapter", adapter(tmp_path, reshape("return src.reshape(shape).copy()"))).expect(0).out
    assert "note special_zero: [2, 3] by (0, 3) with special_zero: a legal call came back as rejected" in said


@pytest.mark.slow
def test_an_adapter_that_ends_after_its_first_answer(tmp_path: Path, cli: Cli) -> None:
    ends = "    answer = None\n" + reshape(
        "if Mine.answer is not None: __import__('os')._exit(0)",
        "Mine.answer = src.reshape(shape).copy()",
        "return Mine.answer",
    )
    _, found = checks(cli, adapter(tmp_path, ends), "--isolation", "worker")
    assert "in the middle of a call; one process makes all calls, until `stop`" in to_mend(found)


def test_one_memory_for_answers_of_two_programs(tmp_path: Path, cli: Cli) -> None:
    change, words = BROKEN["answers in one memory"]
    said = cli("check-adapter", adapter(tmp_path, change), "--json", "--isolation", "worker").expect(1)
    assert words in to_mend(said.data["checks"])


def test_the_lowest_unsupported_rank_is_named(tmp_path: Path, cli: Cli) -> None:
    lacks = reshape("if src.ndim > 6: raise Unsupported('rank:7')", "return src.reshape(shape).copy()")
    _, found = checks(cli, adapter(tmp_path, f"    not_claimed = ('declared', 'form')\n{lacks}"))
    assert re.findall(r"rank:\d+ is claimed", to_mend(found)) == ["rank:7 is claimed"]


UNSUPPORTED = {
    "declared": ("any(node.result is not None for node in graph.nodes)", "declared"),
    "shape-type:s32": ("graph.nodes[0].shape.type == 's32'", "shape-type:s32"),
    "a family": ("graph.src.strides is not None", "layout"),
}


@pytest.mark.parametrize("what", UNSUPPORTED)
def test_the_facet_that_the_adapter_names_is_advised(what: str, tmp_path: Path, cli: Cli) -> None:
    condition, facet = UNSUPPORTED[what]
    change = (
        "    not_claimed = ('form', 'rank:65')\n"
        "    def compile(self, graph):\n        from conformance.adapter.function import FunctionProgram\n"
        f"        if {condition}: raise Unsupported({facet!r})\n"
        "        return FunctionProgram(self, graph.nodes)\n"
    )
    _, found = checks(cli, adapter(tmp_path, change))
    advice = f"claims: {facet} is claimed, and unsupported: {facet}; add '{facet}' to not_claimed, or support it"
    assert advice in to_mend(found)
    assert "rank:" not in to_mend(found)
    assert to_mend(found).count(f"add '{facet}'") == 1


def test_a_facet_that_is_not_claimed_and_works_is_noted(tmp_path: Path, cli: Cli) -> None:
    left_out = ("declared", "form", "rank:65", "chain", "type:f16", "layout:reversed")
    change = (
        f"    not_claimed = {left_out}\n    operations = ('StaticReshape',)\n"
        "    def compile(self, graph):  # it ignores what is declared\n"
        "        from conformance.adapter.function import FunctionProgram\n"
        "        return FunctionProgram(self, graph.nodes)\n"
    )
    code, found = checks(cli, adapter(tmp_path, change))
    notes = [each["text"] for each in found if each["word"] == "note" and each["text"].startswith("not claimed")]
    assert code == 0, to_mend(found)
    assert notes == [
        "not claimed, and may be, because it works: chain, layout:reversed, type:f16, DynamicReshape-1, Reshape-1"
    ]


def test_a_library_that_ends_the_process_has_a_sound_adapter(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    def ends(adapter: Adapter, task: RowStep, programs: Any) -> Any:
        shape = task.graph.nodes[0].shape
        if shape is not None and shape.values == (0, -1):
            return Outcome("crash", message="the process died"), None
        return make_call(adapter, task, programs)

    monkeypatch.setattr("conformance.adapter_check.check_adapter.make_call", ends)
    code, found = checks(cli, "numpy")
    assert code == 0, to_mend(found)
    assert any("[[0, -1]] ended the process or did not end" in each["text"] for each in found)


@pytest.mark.slow
def test_a_library_that_ends_badly_has_a_sound_adapter(cli: Cli, tmp_path: Path) -> None:
    backend = adapter(tmp_path, "import atexit, os\natexit.register(os._exit, 3)\n")
    code, found = checks(cli, backend, "--isolation", "worker")
    assert (code, found[-1]) == (0, {"word": "note", "check": "stop", "text": "stop: it ended with exit code 3"})


def test_what_takes_long_is_shown(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0)
    assert "conformance: checking\n" in cli("check-adapter", "reference").expect(0).err


def test_an_adapter_that_cannot_start_ends_with_three(cli: Cli) -> None:
    cli("check-adapter", "nmpy").expect(3, err="did you mean 'numpy'")
    cli("check-adapter", "cmd:/nowhere/at-all").expect(3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "phase", "words"),
    [
        ("silent", "stop", "stop: no answer"), ("wrong-byte-order", "run", "wrong order"),
        ("changed-input", "run", "src changed"),
        ("wrong-id", "close", "with its id; `not_claimed` does not mend that"),
        ("dies", "close",
         "protocol: does not hold: a close of an unknown program is survived; close: the process ended"),
    ],
)  # fmt: skip
def test_a_program_that_misbehaves_is_named(
    fault: str, phase: str, words: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    if phase == "stop":
        monkeypatch.setattr("conformance.cli.check_adapter.choose_limits", lambda *_: ProcessLimits(stop_seconds=0.3))
    program = shlex.join(["cmd:" + sys.executable, "-S", str(MISBEHAVING), fault, phase])
    code, found = checks(cli, program)
    assert code == 1
    assert words in to_mend(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "phase"), [("changed-input", "run"), ('result:{"bytes": null}', "run"), ("late", "hello")]
)
def test_a_program_is_not_blamed_for_pieces_or_a_slow_start(
    fault: str, phase: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.cli.check_adapter.choose_limits", lambda *_: ProcessLimits(seconds=1.0))
    _, found = checks(cli, shlex.join(["cmd:" + sys.executable, "-S", str(MISBEHAVING), fault, phase]))
    assert not re.search("in pieces|no answer", to_mend(found))


LANGUAGES = {"python": None, "c": "cc", "cpp": "c++", "javascript": "node", "rust": "cargo"}


NEW = [
    pytest.param("python", ("--isolation", "none"), id="python in process"),
    pytest.param("python", (), id="python", marks=pytest.mark.slow),
    *(
        pytest.param(name, (), id=name, marks=[pytest.mark.slow, *[pytest.mark.exhaustive] * (name != "c")])
        for name in LANGUAGES if name != "python"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("language", "isolation"), NEW)
def test_a_new_adapter_runs_unchanged(
    cli: Cli, language: str, isolation: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = LANGUAGES[language]
    if tool and not works(tool):
        pytest.skip(f"there is no {tool} here")
    monkeypatch.chdir(tmp_path)
    said = cli("new-adapter", "my-lib", "--lang", language, "--json").expect(0).data
    out = ""
    for command in said["next"]:
        words = shlex.split(command)
        if words[0] == "conformance":
            extra = ["-k", "copies-by-index"] if words[1] == "run" else []
            out += cli(*words[1:], *isolation, *extra).expect(4 if words[1] == "run" else 0).out
        else:
            subprocess.run(words, check=True)
    assert "my-lib" in out
    cli("new-adapter", "my-lib", "--lang", language).expect(2, err="exists and is left as it is")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_adapter_that_cannot_be_written_leaves_nothing(
    cli: Cli, language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = cli("new-adapter", "mine", "--lang", language, "--json").expect(0).data["file"]
    before = sorted(tmp_path.rglob("*"))
    cli("new-adapter", "mine", "--lang", language, "--out", f"no/{name}").expect(2, err="cannot be written", lines=1)
    if language != "rust":
        cli("new-adapter", "mine", "--lang", language, "--out", "mine.txt").expect(
            2, err="does not end with .", lines=1
        )
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.slow
def test_a_new_adapter_adds_no_failures_to_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new-adapter", "mine"]) == 0
    results = list(run_rows(_rows(), load_adapter("./mine.py:Mine")))
    assert {result.diagnosis for result in results if "error" in result.verdicts.values()} == set()
    assert {result.diagnosis for result in results if "fail" in result.verdicts.values()} == {
        "answered an illegal call"
    }


@pytest.mark.slow
def test_no_illegal_call_is_beyond_the_limits_of_arrays() -> None:
    """Or such a refusal would pass for the library's own."""
    for row in _rows():
        for task in row.steps:
            dims = task.src_spec.dims
            long = volume_of(tuple(length for length in dims if length)) * WIDTH[task.src_spec.type] >> 63
            if long or 32 < len(dims) <= 64:  # NumPy 1.26 stops at 32
                for meaning in (judged.meaning for judged in task.meanings):
                    assert meaning.kind == "unspecified" or (meaning.kind == "legal" and meaning.rules), row.id


def test_a_new_adapter_never_hides_a_module(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("new-adapter", "numpy", "--json").expect(0).data["file"] == "numpy_adapter.py"


@pytest.mark.parametrize("name", ["", "../evil", "1st", "a b", "x" * 99])
def test_an_invalid_name_is_rejected(name: str, cli: Cli) -> None:
    cli("new-adapter", name).expect(2, err="is no name for a backend")


@pytest.mark.parametrize("columns", ["40", "90"])
def test_colours_take_no_columns(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr("conformance.system.terminal.is_terminal", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
    said = cli("check-adapter", adapter(tmp_path, ""), "--isolation", "none")
    assert said.out.splitlines()[0] == "ok   identity: mine 1"
