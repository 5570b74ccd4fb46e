"""Calls, what is due, and answers, in the words that every report uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..model import Case, Meaning, Rule, Step
from ..model.cases import list_given_keys
from ..plan.rows import Row
from ..system.groups import group_pairs
from ..system.terminal import printable
from ..system.text import format_dims, format_shape, shorten
from ..verdict.blame import Blamed
from .row_results import RowResult


def visible(text: object) -> str:
    """Return one line of text in which every character that acts instead of showing is written out."""
    return printable(str(text))


def format_time(text: str) -> str:
    """Write a time of the evidence as `2026-01-02 03:04 UTC`; return any other text as it is."""
    return f"{text[:10]} {text[11:16]} UTC" if text.endswith("+00:00") and len(text) >= 22 else text


def format_step(case: Case, step: Step) -> str:
    """Write the call of a step; T is each type in turn."""
    shapes = ", then ".join(map(format_shape, step.shapes, step.special_zero))
    return ", ".join([f"src {step.src_type}{format_dims(step.src)}", shapes, *_list_keys(step), *_list_form(case)])


def _list_keys(part: Case | Step) -> Iterable[str]:
    return (key.words.format(shorten(str(value), 60)) for key, value in list_given_keys(part) if key.words)


def _list_form(case: Case) -> Iterable[str]:
    if case.declared is not None:
        yield f"dst declared {'without a rank' if case.declared == 'unknown' else format_dims(case.declared)}"
    yield from _list_keys(case)
    for name, operand in case.attributes.items():
        yield f"{name} written as {operand.type} {format_dims(operand.values or ())}" if operand else f"{name} missing"
    for what, named in (("input", case.inputs), ("output", case.outputs)):
        for name, number in named.items():
            yield f"{number} extra {what}{'s' if number > 1 else ''}" if name == "extra" else f"{number or 'no'} {name}"


def format_want(meaning: Meaning, type_: str) -> str:
    if meaning.kind == "legal":
        return f"{type_}{format_dims(meaning.dst or ())}"
    if meaning.kind == "illegal":
        return f"a rejection: breaks {', '.join(meaning.rules)}"
    known = f", but {type_}{format_dims(meaning.dst)}" if meaning.dst else ""
    return f"unspecified by {', '.join(meaning.rules)}{known}"


def collect_wants(rows: Iterable[Row], step: int) -> dict[str, list[str]]:
    """Return the wants at a step, each with the documents that say so."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for judged in row.meanings(step):
            documents = found.setdefault(format_want(judged.meaning, row.case.steps[step].src_type), [])
            documents += [document for document in judged.documents if document not in documents]
    return found


def format_answer(result: RowResult, generic: bool = False, with_message: bool = True) -> str:
    """Say the answer of the backend in words; `generic` writes T for the row's own type."""
    outcome, steps = result.outcome, result.row.case.steps
    own_type = generic and outcome.type == result.row.type and steps[result.step].src_type == "T"
    text = outcome.describe("T" if own_type else "", with_message)
    return f"step {result.step + 1}: {text}" if len(steps) > 1 and outcome.kind != "none" else text


def format_lines(rule: Rule, document: str) -> str:
    """Write the lines of a document that state a rule; or how it treats the rule, with the lines that it is about."""
    treatment = rule.treatment_in(document)
    numbers = list(dict.fromkeys(str(pointer.line) for pointer in rule.pointers_in(document)))
    of = f" of {source}" if (source := rule.source_of(document)) != document else ""
    lines = f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}{of}" if numbers else ""
    if lines and treatment.startswith("stated"):
        return lines + treatment.removeprefix("stated")
    return f"{treatment}, near {lines}" if lines else treatment


def format_blames(blames: Mapping[str, Blamed], rules: Mapping[str, Rule] | None = None) -> str:
    """`static-oneapi: wrong answer, breaks the text (same-volume: line 48); …`; the lines only with `rules`."""

    def name(rule: str, document: str) -> str:
        return f"{rule}: {format_lines(rules[rule], document)}" if rules and rule in rules else rule

    same = group_pairs(
        (f"{each.severity}, {each.blame} ({name(each.premise.rule, document)})", document)
        for document, each in blames.items()
    )
    return "; ".join(f"{', '.join(documents)}: {what}" for what, documents in same.items())


def format_clauses(rule: Rule, documents: Iterable[str]) -> str:
    """`static-graph-v0.9, static-spec-v0.9: our ruling; static-oneapi: line 12`."""
    standing = group_pairs((format_lines(rule, document), document) for document in documents)
    return "; ".join(f"{', '.join(there)}: {lines}" for lines, there in standing.items())


def format_labels(rows: Iterable[Row]) -> str:
    """Write what tells rows of one case and operation apart: `f32, f16 · s32, s64 · runtime`."""
    # the id of a row is `case[operation-type-shape type-way]`
    parts = (row.id[len(row.case.id) + 1 : -1].removeprefix(row.operation).replace("-", " ").split() for row in rows)
    return "; ".join(_write_products(list(dict.fromkeys(map(tuple, parts)))))


def _write_products(names: Sequence[tuple[str, ...]]) -> list[str]:
    """Write names of several parts as few lists; every combination of a list is one of the names."""
    by_first = group_pairs((name[0], name[1:]) for name in names if name)
    alike = group_pairs((rests, first) for first, rests in by_first.items())
    return [
        " · ".join(filter(None, (", ".join(firsts), tail)))
        for rests, firsts in alike.items()
        for tail in (_write_products(rests) or [""])
    ]
