"""The playground says what the contracts say, draws as the reports draw, and reads what the command reads."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cli.arguments import Stop
from conformance.cli.facts import why_inexpressible
from conformance.cli.typed_values import read_named_lengths
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Call, Expression, Kind, Outcome, Spec
from conformance.report import render
from conformance.report.picture import draw_reading
from conformance.report.render import Site
from conformance.site.playground import PLAYGROUND, write_playground
from conformance.verdict.blame import severity_of
from tests.exchange.test_code import drawn, small

from .test_documents import PageLinks

SITE = Site("0" * 64, "")
SPEC = load_spec(None)
DRIVER = """
const show = (key, value) => (typeof value === "bigint" ? String(value) : value);
const read = (text) => { try { return playground.readLengths(text); } catch (error) { return error.message; } };
for (const line of require("fs").readFileSync(0, "utf8").trim().split("\\n")) {
  const [name, zero, src, shape] = JSON.parse(line), call = {src: read(src), shape: read(shape), zero};
  if (name === null) { console.log(JSON.stringify(call.src, show)); continue; }
  const found = playground.decide(name, data.documents[name], call);
  const {kind, dst, rules, reason} = found;
  const picture = kind === "not expressible" ? null : playground.drawReading(call, found);
  console.log(JSON.stringify({kind, dst, rules, reason: reason ?? null, picture}, show));
}
"""


def scripts_of(html: str) -> tuple[str, str]:
    """Return the scripts of the page without the one that needs a page, and its data."""
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    files = re.findall(r'<script src="assets/([^"]*)">', html)
    assert files == ["playground.js", "playground_page.js"]
    return script + render.list_assets()[files[0]], data


def answers(
    folder: Path, asked: Sequence[tuple[str | None, bool, str, str]], spec: Spec = SPEC, driver: str = DRIVER
) -> list[Any]:
    """Return what the script of a page says of calls, written as one would type them; None asks how src is read."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    write_playground(folder / PLAYGROUND, spec, SITE, [], [])
    script, data = scripts_of((folder / PLAYGROUND).read_text("utf-8"))
    (folder / "main.js").write_text(f"{script}\nconst data = {data};\n{driver}", "utf-8")
    given = "".join(f"{json.dumps(each)}\n" for each in asked)
    done = subprocess.run(
        ["node", "main.js"], cwd=folder, input=given, capture_output=True, text=True, check=True, timeout=120
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def wanted(document: str, call: Call) -> dict[str, Any]:
    reason = why_inexpressible(SPEC.operations[SPEC.documents[document].operation], call)
    if reason:
        return {"kind": "not expressible", "dst": None, "rules": [], "reason": reason, "picture": None}
    contract = contracts(SPEC)[document]
    meaning = contract.meaning(*call)
    drawing = draw_reading(call, contract, meaning)
    lines = [
        {"name": name, "top": top, "boxes": [box._asdict() for box in boxes]} for name, top, boxes in drawing.lines
    ]
    dst = None if meaning.dst is None else [None if length is None else str(length) for length in meaning.dst]
    picture = {"label": drawing.label, "lines": lines}
    return {"kind": meaning.kind, "dst": dst, "rules": list(meaning.rules), "reason": None, "picture": picture}


@pytest.mark.slow
def test_the_script_says_and_draws_what_the_contracts_say(tmp_path: Path) -> None:
    made = [*drawn(1500, 4), *itertools.islice(small(), 0, None, 197)]
    made.append(("static-oneapi", True, (1,) * 8 + (5, 1, 1, 7), (1,) * 7 + (7, 0)))  # not all of src is drawn
    asked = [(name, zero, ",".join(map(str, src)), ",".join(map(str, shape))) for name, zero, src, shape in made]
    said = answers(tmp_path, asked)
    due = [wanted(name, Call(src, shape, zero)) for name, zero, src, shape in made]
    assert [each for each in zip(made, said, due, strict=True) if each[1] != each[2]] == []
    assert {each["kind"] for each in due} == {"legal", "illegal", "unspecified", "not expressible"}


TEXTS = (
    "", "()", "[]", "3", "3,4,5", "3x4x5", "3X4*5", " [3, 4, 5] ", "(3,)", "3,", ",", "3,,4", "3;4", "3 4  5", "<2,3>",
    "{2}", "'2,3'", "(2", "[2)", "2)", "-1", "+7", "-0", "007", "1_000", "1__0", "1_", "0x10", "1e3", "2.5", "２", "n",
    "n,3", "-n", "1,2;3", "None", "2x", "x", "2 x 3", "1\t2", ",".join(["1"] * 1000), ",".join(["1"] * 1001),
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "00009223372036854775807", "99999999999999999999999",
)  # fmt: skip


def test_the_form_reads_what_the_command_reads(tmp_path: Path) -> None:
    said = answers(tmp_path, [(None, True, text, "") for text in TEXTS])
    for text, found in zip(TEXTS, said, strict=True):
        try:
            read = read_named_lengths("--src", text)
        except Stop:
            read = None
        if read is None or any(isinstance(length, str) for length in read):
            assert isinstance(found, str), text
            assert found.endswith("."), text
        else:
            assert found == [str(length) for length in read], text


NEAREST = """
const meaning = {kind: "legal", rules: []};
const called = (src, shape, zero, failing) => {
  const call = {src: src.map(BigInt), shape: shape.map(BigInt), zero};
  return {call, sort: playground.sortOf(call, meaning), failing: failing ? [[0, 0, 1, 1]] : []};
};
const ran = [
  called([2 ** 40, 3], [3, 2 ** 40], true, true), called([4, 3, 1], [3, 4], true, true),
  called([5, 3], [3, 5], true, true), called([4, 3], [3, 4], true, false),
  called([4, 3], [-1, 4], true, true), called([0, 3], [3, 4], true, true),
];
const found = playground.findRun(called([4, 3], [3, 4], true).call, meaning, ran);
const order = found.failing.map(({call}) => String(call.src));
console.log(JSON.stringify([ran.indexOf(found.exact), found.alike.length, ...order]));
"""


def test_the_nearest_call_has_the_ranks_and_lengths(tmp_path: Path) -> None:
    (found,) = answers(tmp_path, [], driver=NEAREST)
    assert found == [3, 4, "5,3", "4,3,1", "1099511627776,3"]


@pytest.mark.parametrize(
    ("outcome", "kind", "severity"),
    [
        (Outcome("crash"), "illegal", "ends the process"),
        (Outcome("timeout", side_effects=("src changed",)), "legal", "ends the process"),
        (Outcome("tensor"), "legal", "wrong answer"),
        (Outcome("tensor"), "unspecified", "wrong answer"),
        (Outcome("rejected", side_effects=("src changed",)), "illegal", "wrong answer"),
        (Outcome("tensor", side_effects=("src changed",)), "illegal", "wrong answer"),
        (Outcome("rejected"), "legal", "rejects a legal call"),
        (Outcome("tensor"), "illegal", "accepts an illegal call"),
    ],
)
def test_a_severity_says_what_a_user_gets(outcome: Outcome, kind: Kind, severity: str) -> None:
    assert severity_of(outcome, kind) == severity


def test_a_sentence_cannot_end_the_script(tmp_path: Path) -> None:
    rule = replace(SPEC.rules["one-infer"], sentence="Two </script><script>alert(1)</script> <!-- -->.")
    spec = replace(SPEC, rules={**SPEC.rules, rule.id: rule})
    (found,) = answers(tmp_path, [("static-oneapi", True, "6", "-1,-1")], spec)
    assert found["rules"] == ["one-infer"]
    page = (tmp_path / PLAYGROUND).read_text("utf-8")
    assert page.count("</script>") == 4
    assert r"<\/script><script>alert(1)<\/script> <\!-- -->" in page


def test_a_rule_without_an_exact_form_has_no_playground(tmp_path: Path) -> None:
    known = SPEC.rules["same-volume"]
    more = replace(known, id="more", ensures=Expression("all(n <= 9 for n in dst)", known.place))
    write_playground(tmp_path / PLAYGROUND, SPEC, SITE, [], [])
    assert (tmp_path / PLAYGROUND).stat().st_size < 100_000
    write_playground(
        tmp_path / PLAYGROUND, replace(SPEC, rules={**SPEC.rules, "more": more}), Site("0" * 64, ""), [], []
    )
    page = (tmp_path / PLAYGROUND).read_text("utf-8")
    assert "This suite has no playground: " in page
    assert "rule &#39;more&#39;: `ensures: all(n &lt;= 9 for n in dst)` is written in no language; " in page
    assert "<script>" not in page


@pytest.mark.slow
def test_published_pages_lead_to_the_playground(small_site: Path) -> None:
    for page, link in (
        ("index.html", PLAYGROUND), ("rules.html", PLAYGROUND), ("spec/index.html", f"../{PLAYGROUND}"),
        ("spec/static-oneapi.html", f"../{PLAYGROUND}#src=2,3&shape=6&special_zero=false"),
    ):  # fmt: skip
        assert link in PageLinks(small_site / page).links, page
    data = json.loads(scripts_of((small_site / PLAYGROUND).read_text("utf-8"))[1])
    names = ("right 0.9", "right 1", "wrong 1")
    assert data["backends"] == [[name, f"{name.replace(' ', '-')}/report.html"] for name in names]
    assert [call[:4] for call in data["calls"]] == [
        ["flattens", "2,3", "6", 0], ["turns", "2,3", "3,2", 0], ["zero-beside-infer", "0,3", "0,-1", 0],
        ["copies-past-rank", "6", "2,0", 1],
    ]  # fmt: skip
    by_case = {case: [data["done"][number] for number in done] for case, _, _, _, *done in data["calls"]}
    assert [done[1] for done in by_case["flattens"]] == [[]] * 5
    failing = {(backend, severity) for _, failing in by_case["turns"] for backend, severity, *_ in failing}
    assert failing == {(0, 1), (2, 1)}
    accepts = data["severities"].index("accepts an illegal call")
    assert [[each[:2] for each in done[1]] for done in by_case["zero-beside-infer"]][1] == [[0, accepts], [2, accepts]]
