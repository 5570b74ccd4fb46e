"""The ways in which several commands print the same facts: headings, paragraphs, meanings, and what documents say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..meaning.partial import describe_folded
from ..model import Spec
from ..system.terminal import label_paragraph, paint, say, table, wrap
from ..system.text import format_dims
from ..verdict.conclude import Conclusion
from ..verdict.document_table import lay_out_documents

KIND_STYLES = {
    "legal": "green",
    "illegal": "red",
    "unspecified": "yellow",
    "conditional": "yellow",
    "not decided": "yellow",
}


def print_heading(name: str, kind: str, place: str) -> None:
    say(f"{paint('bold', name)}  {paint('dim', f'{kind} · {place}')}")


def print_conclusion(name: str, conclusion: Conclusion, notes: Iterable[str] = ()) -> None:
    """Print what a backend is shown to do: a line for each document, the limits, and notes."""
    say(paint("bold", name))
    for text in lay_out_documents(conclusion):
        say(text)
    for note in notes:
        say(paint("yellow", wrap(f"note: {note}", 2, 4)))


def print_paragraphs(facts: Iterable[tuple[str, str | None]]) -> None:
    for label, text in facts:
        if text:
            say(label_paragraph(label, text))


def print_section(title: str, rows: Sequence[Sequence[str]]) -> None:
    if rows:
        say()
        say(paint("bold", title))
        say(table([(f"  {first}", *rest) for first, *rest in rows]))


def print_meanings(spec: Spec, meanings: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a table of meanings, and below it each rule that they name."""
    kinds = [(name, paint(KIND_STYLES.get(each["kind"], "dim"), each["kind"]), each) for name, each in meanings.items()]
    say(table([(paint("bold", name), kind, _describe_meaning(each)) for name, kind, each in kinds]))
    treatments: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document, each in meanings.items():
        for reason in each["because"]:
            treatments.setdefault(reason["rule"], {})[document] = reason
    print_rules(spec, treatments)


def _describe_meaning(meaning: Mapping[str, Any]) -> str:
    dst, rules = meaning["dst"], ", ".join(reason["rule"] for reason in meaning["because"])
    if meaning.get("branches"):  # of a call with names of lengths
        reason = str(meaning["reason"]).removeprefix(f"{meaning['kind']} ")
        return reason + describe_folded(meaning["folded"])
    if meaning["kind"] == "legal":
        return format_dims(dst) + (f"; a backend may reject it for want of capacity: {rules}" if rules else "")
    if meaning["kind"] == "illegal":
        return f"breaks {rules}"
    if meaning["kind"] == "unspecified":
        known = "nothing is known of dst"
        if dst is not None:
            known = ("all that is known of dst: " if None in dst else "if answered, ") + format_dims(dst)
        return f"{rules or 'more than one dst keeps every rule'}; {known}"
    return str(meaning["reason"])  # why there is no such call, or nothing is decided


def print_rules(spec: Spec, treatments: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    for rule, documents in treatments.items():
        say()
        say(f"{paint('bold', rule)}  {paint('dim', spec.rules[rule].level)}")
        say(wrap(spec.rules[rule].sentence, 2))
        say(table([("", name, *describe_treatment(each)) for name, each in documents.items()]))


def describe_treatment(treatment: Mapping[str, Any]) -> tuple[str, str]:
    """Say how a document treats a rule, and the lines or the reason."""
    lines, reason = format_pointers(treatment["at"]), treatment["reason"]
    return treatment["treatment"], f"{reason} (near {lines})" if reason and lines else reason or lines


def format_pointers(at: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f'line {each["line"]} "{each["words"]}"' for each in at)


def format_value(value: Any) -> str:
    """Write a value of operations.yaml on one line."""
    if isinstance(value, Mapping):
        return " · ".join(f"{key}: {format_value(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
