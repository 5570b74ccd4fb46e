"""Options that several commands have."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .parser import Parser, existing_file, positive, seconds

if TYPE_CHECKING:
    from ..isolate.process.launch import ProcessLimits

BACKEND = "a bundled name, module:Class, path/to/file.py:Class or cmd:PROGRAM"


def add_backend(parser: Parser) -> None:
    parser.add_argument("backend", metavar="BACKEND", help=BACKEND)


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def add_suite(parser: Parser) -> None:
    text = "a folder with spec/ or cases/, which replace the bundled, or extend it if they say so"
    parser.path("--suite", "DIR", text)


def add_timeout(parser: Parser) -> None:
    from ..isolate.process.launch import DEFAULT_LIMITS  # imports NumPy, which --help need not wait for

    text = f"limit of one call (%(default)g); until one is answered, {DEFAULT_LIMITS.start_seconds:g}"
    parser.add_argument("--timeout", type=seconds, default=DEFAULT_LIMITS.seconds, metavar="SECONDS", help=text)


def add_limits(parser: Parser) -> None:
    from ..isolate.process.launch import DEFAULT_LIMITS, DEVICE_MEMORY  # as above

    add_timeout(parser)
    usual, on_device = DEFAULT_LIMITS.memory >> 20, DEVICE_MEMORY >> 20
    text = f"limit of a process's address space ({usual}; {on_device} on a device, as in torch@cuda)"
    parser.add_argument("--memory", type=positive, metavar="MIB", help=text)


def read_limits(args: argparse.Namespace) -> ProcessLimits:
    from ..isolate.backend import choose_limits  # as above

    return choose_limits(args.backend, args.timeout, args.memory)


def add_jobs(parser: Parser, default: int = 1) -> None:
    text = "number of processes at once (%(default)s)"
    parser.add_argument("--jobs", type=positive, default=default, metavar="N", help=text)


def add_isolation(parser: Parser) -> None:
    text = "worker: a process for the backend (the default); none: this process, which ends no call"
    parser.add_argument("--isolation", choices=("worker", "none"), help=text)


def add_operation_and_type(parser: Parser) -> None:
    parser.many("--operation", "ID", "this operation only")
    parser.many("--type", "TYPE", "this element type only")


def add_key(parser: Parser) -> None:
    text = "a private key of ssh-keygen to sign with, or a public one that an agent holds"
    parser.once("--key", "FILE", text, type=existing_file)


def add_trust(parser: Parser) -> None:
    text = "the keys that may sign: allowed_signers, as ssh-keygen reads it"
    parser.once("--allowed", "FILE", text, type=existing_file)
    parser.path("--revoked", "FILE", "revoked keys, or digests of revoked statements")
    parser.path("--challenge", "FILE", "the challenge that the issuer gave")
