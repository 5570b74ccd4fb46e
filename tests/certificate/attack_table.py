"""Attacks on certificates in one table, with what each check is replaced by to see that it is the one that refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from conformance.certificate.check import Trust
from conformance.evidence.results import read
from conformance.report.verify import Verified
from conformance.verdict.conclude import conclude_evidence
from tests.certificate.vendor_and_issuer import Lab, as_it_is


class Attack(NamedTuple):
    """An attack on a certificate: what is done, the words of the refusal, and the check that refuses."""

    act: Callable[[Lab], Trust | None]
    """Changes the folder; returns what the reader knows, if it is not the usual."""
    words: str
    check: str


ATTACKS: dict[str, Attack] = {}
NO_CHECK: dict[str, Callable[..., Any]] = {
    "_refuse_difference": lambda *_: None,
    "_check_times": lambda *_: None,
    "_check_challenge": lambda *_: None,
    "_check_revocation": lambda *_: None,
    "_check_subject": lambda *_: None,
    "_check_issuer": lambda *_: "lab",
    "_check_audit": lambda *_: ("anybody", 1 << 30),
    "_check_pages": lambda *_: None,
    "_refuse_other_challenge": lambda *_: None,
    "signer_of": lambda file, *_: file.path.name,
    "read_record": lambda path, _: as_it_is(path),
    "_check_digest": lambda *_: None,
    "verify_content": lambda content, plan: Verified((), conclude_evidence(plan, read(content.path)),
                                                     read(content.path), ()),
}  # fmt: skip


Act = TypeVar("Act", bound=Callable[[Lab], "Trust | None"])


def attack(words: str, check: str) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        ATTACKS[act.__name__.replace("_", " ").strip()] = Attack(act, words, check)
        return act

    return add
