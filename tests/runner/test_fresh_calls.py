"""A row that fails is called again alone. What goes right there depends on the calls before it, and is blamed so."""

from pathlib import Path

import pytest

from conformance.evidence.results import read

from ..builders import Cli, write_suite

CASES = """about: A few.
extends: bundled
cases:
  - {id: turned-first, rule: literal-lengths, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
  - {id: turned-second, rule: literal-lengths, src: "T[2, 3]", shape: [6, 1], special_zero: false, expect: "T[6, 1]"}
"""
LIBRARY = """
from conformance import FunctionAdapter
seen = []
class Mine(FunctionAdapter):
    name, version, rejections = "mine", "1", (ValueError,)
    def reshape(self, src, shape, special_zero):
        seen.append(shape)
        return src.reshape({answer})
"""
ONLY_LATER = "seen[0]"
ALWAYS = "(2, 3)"
NOTE = "# went right alone in a fresh process: it depends on the calls before it"


@pytest.mark.parametrize(
    ("answer", "alone", "rules"),
    [(ONLY_LATER, {"turned-second"}, {"each-call-alone"}), (ALWAYS, set(), {"literal-lengths"})],
)
def test_a_row_that_goes_right_alone_breaks_no_text(
    answer: str, alone: set[str], rules: set[str], tmp_path: Path, cli: Cli
) -> None:
    library = tmp_path / "mine.py"
    library.write_text(LIBRARY.format(answer=answer), encoding="utf-8")
    suite = write_suite(tmp_path, CASES)
    words = ["run", f"{library}:Mine", "--suite", suite, "-k", "turned", "--type", "f32"]
    words += ["--operation", "StaticReshape", "--out", tmp_path / "out"]
    said = cli(*words, "--json").expect(1).data
    blamed = {blame["rule"] for failure in said["failures"] for blame in failure["blames"].values()}
    assert blamed == rules
    results = read(tmp_path / "out" / "results.jsonl").results
    assert {result.row.partition("[")[0] for result in results if result.went_right_alone} == alone
    assert all((failure["repeat"] is None) == bool(alone) for failure in said["failures"])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (NOTE in page) == bool(alone)
    cli("verify", tmp_path / "out", "--suite", suite).expect(0)
