"""`conformance meaning`, `diff-documents` and the domain of calls."""

import json
import shlex
from itertools import combinations, islice, pairwise

import pytest

import conformance
from conformance.meaning.domain import FULL_DOMAIN, SMALL_DOMAIN, TINY_DOMAIN, Domain, calls

from ..builders import DOCUMENTS, Cli
from .spec_commands import MEANING, answer


def test_meaning_gives_the_answer_in_each_document(cli: Cli) -> None:
    data = answer(cli, *MEANING)
    assert data["call"] == {"src": [3, 4, 5], "shape": [0, -1], "special_zero": True}
    assert {name: (each["kind"], each["dst"]) for name, each in data["meanings"].items()} == {
        name: ("legal", [3, 20]) for name in DOCUMENTS
    }
    assert cli(*MEANING)[1].count("[3, 20]") == 5


def test_meaning_says_for_which_lengths_a_call_is_legal(cli: Cli) -> None:
    words = ("meaning", "--src", "f32[max, 3]", "--shape", "2,-1", "--special-zero", "true")
    (meaning,) = {json.dumps(each["branches"]) for each in answer(cli, *words)["meanings"].values()}
    legal, illegal = json.loads(meaning)
    assert legal == {"kind": "legal", "when": "max is even", "rules": [], "dst": [2, "3*max/2"]}
    assert (illegal["kind"], illegal["when"], illegal["rules"]) == ("illegal", "max is odd", ["same-volume"])
    said = cli(*words)[1]
    assert "conditional  legal if and only if max is even (dst [2, 3*max/2]); otherwise illegal: same-volume" in said
    assert "max is folded into -1 with others" in said
    said = cli("meaning", "--src", "n,m", "--shape", "2,-1", "--special-zero", "true").out
    assert said.startswith("src [n, m], shape [2, -1], special_zero true, n and m at least 1\n")
    assert "m and n are folded into -1 with others" in said or "n and m are folded into -1 with others" in said


def test_meaning_names_broken_rules_with_their_sentence_and_line(cli: Cli) -> None:
    words = ("meaning", "--src", "0,3", "--shape", "0,-1", "--special-zero", "false")
    meanings = answer(cli, *words)["meanings"]
    assert meanings["static-graph-v0.9"]["kind"] == "illegal"
    (broken,) = meanings["static-graph-v0.9"]["because"]
    assert broken["rule"] == "zero-meets-infer"
    assert broken["at"][0]["line"] == 40
    assert meanings["static-oneapi"]["kind"] == "unspecified"
    assert meanings["static-oneapi"]["dst"] == [0, None]
    out = cli(*words)[1]
    assert broken["sentence"] in out
    assert "line 40" in out
    assert "[0, ?]" in out


DIMS = (
    "3,4,5", "3x4x5", "3X4x5", "[3, 4, 5]", "(3,4,5)", "{3;4;5}", "3 4 5", " 3 ,4 , 5 ", "3,4,5,", "(3, 4, 5,)",
    "T[3, 4, 5]", "f32[3,4,5]", "'3,4,5'", "3*4*5", "+3,4,5", "03,4,5",
)  # fmt: skip
LEADING_MINUS = (
    ["--shape", "-1,2"], ["--shape=-1,2"], ["--shape", "(-1,2)"], ["--shape", "-1 2"],
)  # fmt: skip
TRUE = (
    ["--special-zero", "True"], ["--special-zero=yes"], ["--special-zero", "1"], ["--special-zero", "ON"],
    ["--special-zero", "'t'"], ["--special-zero"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "call", "dst"),
    [
        *((["--src", typed, "--shape", "60", "--special-zero"], ([3, 4, 5], [60], True), [60]) for typed in DIMS),
        *(
            (["--src", "3,4", *shape, "--special-zero", "no"], ([3, 4], [-1, 2], False), [6, 2])
            for shape in LEADING_MINUS
        ),
        *(
            (["--src", typed, "--shape", typed, "--special-zero", "no"], ([], [], False), None)
            for typed in ("", "()", "[]", " ", "( )", "''")
        ),
        *((["--src", "3", "--shape", "3", *flag], ([3], [3], True), [3]) for flag in TRUE),
    ],
)
def test_meaning_reads_a_call_as_people_write_it(
    cli: Cli, words: list[str], call: tuple[object, ...], dst: list[int] | None
) -> None:
    data = answer(cli, "meaning", *words)
    assert data["call"] == dict(zip(("src", "shape", "special_zero"), call, strict=True))
    meaning = data["meanings"]["static-oneapi"]
    assert meaning["dst"] == dst if dst else meaning["kind"] == "unspecified"


@pytest.mark.parametrize("name", ["x", "X", "x2"])
def test_a_name_with_an_x_is_one_length(cli: Cli, name: str) -> None:
    assert answer(cli, "meaning", "--src", name, "--shape", f"[{name}]", "--special-zero", "no")["call"]["src"] == [
        name
    ]
    (found,) = conformance.meaning((name, 2), (2, name), document="static-oneapi").values()
    assert (found.kind, found.dst) == ("legal", (2, name))


def test_meaning_takes_the_form_of_the_call(cli: Cli) -> None:
    def kinds(*words: str) -> dict[str, str]:
        meanings = answer(cli, "meaning", "--src", "3", "--shape", "3", "--special-zero", "true", *words)["meanings"]
        return {name: each["kind"] for name, each in meanings.items()}

    assert set(kinds("--form", "dst_type=f16").values()) == {"illegal"}
    assert set(kinds("--form", "src_type=f64").values()) == {"unspecified"}
    assert set(kinds("--form", "missing=special_zero").values()) == {"illegal"}
    assert set(kinds("--form", "missing=shape").values()) == {"illegal"}
    assert set(kinds("--form", "shape_rank=2").values()) == {"illegal"}
    assert set(kinds("--form", "declared=?").values()) == {"legal"}
    assert set(kinds("--form", "declared=4").values()) == {"illegal"}
    assert set(kinds("--form", "extra_attributes=mode").values()) == {"unspecified"}
    assert kinds("--form", "shape_type=s64")["static-oneapi"] == "legal"


def test_meaning_knows_what_an_operation_cannot_express(cli: Cli) -> None:
    meanings = answer(cli, "meaning", "--src", "0", "--shape", "0,4294967296", "--special-zero", "true")["meanings"]
    assert meanings["dynamic-spec-v0.9"]["kind"] == "not expressible"
    assert "s32" in meanings["dynamic-spec-v0.9"]["reason"]
    assert meanings["reshape-spec-v0.7"]["kind"] != "not expressible"


@pytest.mark.slow
def test_diff_documents_says_what_was_added_and_shows_it(cli: Cli) -> None:
    data = answer(cli, "diff", "static-oneapi", "static-graph-v0.9")
    changes = {kind: {each["rule"] for each in rules} for kind, rules in data["rules"].items()}
    assert "zero-meets-infer" in changes["added"]
    assert "lower-bound" in changes["same rule, treated otherwise"]
    assert changes["dropped"] == set()
    assert "literal-zero-behind-infer-of-empty-src" in data["cases"]
    assert "swaps-two-lengths" not in data["cases"]
    back = answer(cli, "diff", "static-graph-v0.9", "static-oneapi")
    assert back["cases"] == data["cases"]
    assert {each["rule"] for each in back["rules"]["dropped"]} == changes["added"]
    cli("diff", "static-oneapi", "static-graph-v0.9").expect(0, out=data["example"]["command"])


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), list(combinations(DOCUMENTS, 2)))
def test_the_example_of_a_diff_differs_between_the_documents(cli: Cli, a: str, b: str) -> None:
    example = answer(cli, "diff", a, b)["example"]
    assert (example is None) == ((a, b) == ("static-graph-v0.9", "static-spec-v0.9"))
    if example is not None:
        meanings = answer(cli, *shlex.split(example["command"])[1:])["meanings"]
        assert (meanings[a]["kind"], meanings[a]["dst"]) != (meanings[b]["kind"], meanings[b]["dst"])


def test_diff_documents_says_when_no_call_parts_them(cli: Cli) -> None:
    cli("diff", "static-spec-v0.9", "static-graph-v0.9").expect(
        0, out=["no call was found that means something else", "searched"]
    )


def test_diff_documents_of_two_operations_compares_signatures(cli: Cli) -> None:
    signature = answer(cli, "diff", "static-graph-v0.9", "dynamic-spec-v0.9")["signature"]
    assert signature["shape types"] == {"static-graph-v0.9": ["s64"], "dynamic-spec-v0.9": ["s32"]}
    assert signature["shape passed as"] == {"static-graph-v0.9": ["attribute"], "dynamic-spec-v0.9": ["runtime"]}


FOUND = {
    ("dynamic-spec-v0.9", "reshape-spec-v0.7"): (
        {"shape-rank-is-unsaid", "layout-is-unsaid", "extra-operands-are-unsaid"}, "shape-types-differ",
        {"lower-bound-is-missing", "zero-with-infer-is-forbidden-in-two", "could-be-is-a-bound"},
    ),
    ("static-spec-v0.9", "static-oneapi"): (
        {"lower-bound-is-missing", "zero-with-infer-is-forbidden-in-two", "content-is-unsaid",
         "output-is-required-in-one", "corresponding-is-not-defined"},
        "outputs-have-no-name", {"infer-may-have-no-answer"},
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("pair", FOUND)
def test_a_diff_tells_findings_in_which_two_documents_differ(cli: Cli, pair: tuple[str, str]) -> None:
    differing, open_question, same = FOUND[pair]
    data = answer(cli, "diff", *pair)
    found, named = ({each["finding"] for each in data[key]} for key in ("findings", "both_named"))
    assert found == differing
    assert open_question in named
    assert not same & (found | named)
    assert f"both are named, and may agree\n  {data['both_named'][0]['finding']}" in cli("diff", *pair).out


def test_a_diff_tells_findings_about_one_of_two_documents(cli: Cli) -> None:
    pair = "static-graph-v0.9", "static-oneapi"
    assert "shape-row-is-pasted-in" in {each["finding"] for each in answer(cli, "diff", *pair)["one_named"]}
    assert "\nfindings about one of them only\n  shape-row-is-pasted-in" in cli("diff", *pair).out


def test_a_document_compared_with_itself_is_said_to_be_one(cli: Cli) -> None:
    cli("diff", "static-oneapi", "static-oneapi").expect(0, out="static-oneapi is one document", lines=0)
    data = answer(cli, "diff", "static-oneapi", "static-oneapi")
    assert data["findings"] == data["both_named"] == []


@pytest.mark.parametrize("domain", [SMALL_DOMAIN, TINY_DOMAIN, Domain(0, 0, 0, 0, 0), Domain(1, 4, 2, 0, 1)], ids=str)
def test_a_domain_holds_each_call_once_the_smallest_first(domain: Domain) -> None:
    found = list(calls(domain))
    assert len(found) == len(set(found)) == domain.size
    sizes = [(len(src) + len(shape), sum(src) + sum(map(abs, shape))) for src, shape, _ in found]
    assert all(a <= b for a, b in pairwise(sizes))
    assert found == list(calls(domain))


def test_a_domain_need_not_be_held_in_memory() -> None:
    assert len(list(islice(calls(FULL_DOMAIN), 1000))) == 1000
