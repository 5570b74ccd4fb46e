"""A program that breaks the protocol, and the words of its faults."""

import sys
from pathlib import Path

from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol.remote import RemoteAdapter
from conformance.model import Outcome
from conformance.plan.memory import TensorSpec
from conformance.plan.steps import RowStep
from conformance.run.call import make_call

from .calls import reshape

PROGRAM = Path(__file__).parents[1] / "misbehaving.py"
LIMITS = ProcessLimits(seconds=10.0, start_seconds=20.0, stop_seconds=10.0)
"""For whatever must not be late, on a busy machine too."""
OPEN: list[RemoteAdapter] = []


def remote(*words: str, limits: ProcessLimits = LIMITS) -> RemoteAdapter:
    """The program with a fault; it is closed at the end of the test."""
    OPEN.append(RemoteAdapter([sys.executable, "-S", str(PROGRAM), *words], limits))
    return OPEN[-1]


def hurry(backend: RemoteAdapter) -> None:
    """Give the running process little time for its next requests. Later processes have the usual time."""
    process = backend.session().process
    process.limits = process.limits._replace(seconds=0.3, start_seconds=0.3, stop_seconds=0.3)


def task(src: tuple[int, ...] = (2, 3), shape: tuple[int, ...] = (3, 2)) -> RowStep:
    return RowStep(reshape(src, shape), TensorSpec("f32", src), (), False, (), False)


def outcome(backend: RemoteAdapter, **call: tuple[int, ...]) -> Outcome:
    return make_call(backend, task(**call), None)[0]


def assert_outcome(answer: Outcome, kind: str, words: str) -> None:
    assert (answer.kind, words in (answer.message or "")) == (kind, True), str(answer)[:500]


IN_A_CALL = {
    "silent": ("timeout", "no answer within 0.3 s to run"),
    "late": ("timeout", "no answer within 0.3 s to run"),
    "partial-line": ("timeout", "has no line feed"),
    "crlf": ("error", "ends with a carriage return"),
    "bom": ("error", "byte order mark"),
    "invalid-utf8": ("error", "; write a header first, then its bytes"),
    "invalid-json": ("error", "the line is no JSON"),
    "trails": ("error", "the line is no JSON"),
    "two-objects": ("error", "the line is no JSON"),
    "key-twice": ("error", "the key 'id' occurs twice"),
    "no-object": ("error", "the line is no JSON object"),
    "huge-line": ("error", "a line of more than"),
    "wrong-id": ("error", "reply to each request once, in order, with its id"),
    "text-id": ("error", "was due; reply to each request once"),
    "prints": ("error", "b'Using 4 threads'; write a header in one line"),
    "exits": ("crash", "ended with exit code 0 in the middle of a call"),
    "dies": ("crash", "ended with exit code 1 in the middle of a call; its stderr ends with: out of licences"),
    "segfault": ("crash", "died of SIGSEGV"),
    "child-holds-stdout": ("crash", "ended with exit code 3"),
    "closes-stdout": ("crash", "closed its output without ending"),
    "short-payload": ("timeout", "23 of the 24 bytes of its payload arrived"),
    "long-payload": ("error", "4 bytes more than it announced"),
    "unknown-type": ("error", '"q7", which is no element type'),
    "dims-against-bytes": ("error", "24 bytes for f32[99], which takes 396"),
    "wrote-nonsense": ("error", "'wrote' names the tensor 9"),
    "two-kinds": ("error", "it has result, rejected"),
    "no-kind": ("error", "it has none"),
}


CONTRADICTIONS = {
    "but should be the size of the payload": [
        'result:{"bytes": "24"}', 'result:{"bytes": 24.0}', 'result:{"bytes": null}', 'result:{"bytes": -1}',
        'beside:{"changed": [{"call": 1, "bytes": 1048577}]}',
    ],
    "4 bytes more than it announced": ['result:{"bytes": 20}'],
    "24 bytes more than it announced": ['result:{"bytes": 0, "dims": [0]}'],
    "lies at 0 in shared memory, where it was given no room": ['result:{"at": 0}'],
    "which is no element type": ['result:{"type": null}', 'result:{"type": "string"}'],
    "24 bytes for f64[3, 2], which takes 48": ['result:{"type": "f64"}'],
    "but should be a list": ['result:{"dims": null}', 'result:{"dims": "32"}'],
    "should be a whole number": [
        'result:{"dims": [3, null]}', 'result:{"dims": [3, 2.0]}', 'result:{"dims": [6, true]}',
        'result:{"dims": [6, "1.0"]}', 'result:{"dims": [6, ""]}', 'result:{"dims": [-6, "-"]}',
        'result:{"dims": [-6, "--1"]}', 'result:{"dims": [6, "+1"]}', 'result:{"dims": [6, "¹"]}',
        f'result:{{"dims": [6, "{"0" * 39}1"]}}',
    ],
    "24 bytes for f32[3, 1], which takes 12": ['result:{"dims": [3, 1]}'],
    "24 bytes for f32[0, -2], which takes 0": ['result:{"dims": [0, -2]}'],
    "'result' is 5, but should be an object": ['beside:{"result": 5}'],
    "it has result, error": ['beside:{"error": {"message": "both"}}'],
    "but should be a list of objects": [
        'beside:{"wrote": {"tensor": 0}}', 'beside:{"wrote": [0]}', 'beside:{"wrote": null}',
        'beside:{"changed": [[]]}', 'beside:{"overwrote": "src"}',
    ],
    'names the tensor "0", and there are 1': ['beside:{"wrote": [{"tensor": "0", "bytes": 4}]}'],
    "'wrote' names the tensor -1, and there are 1": ['beside:{"wrote": [{"tensor": -1, "bytes": 4}]}'],
    "'wrote' names the tensor 1, and there are 1": ['beside:{"wrote": [{"tensor": 1, "bytes": 4}]}'],
    "it changed 4 bytes of a memory that has": ['beside:{"wrote": [{"tensor": 0, "bytes": 4}]}'],
    "it changed null bytes of a memory that has": ['beside:{"wrote": [{"tensor": 0}]}'],
    "'changed' names the call null, which was not made": ['beside:{"changed": [{"bytes": 24}]}'],
    "'changed' names the call 0, which was not made": ['beside:{"changed": [{"call": 0, "bytes": 24}]}'],
    "but should be the number of calls": ['beside:{"calls": 0}', 'beside:{"calls": true}'],
    "but should be three counts": ['beside:{"usage": [1, 2]}', 'beside:{"usage": [1, 2, -3]}'],
    "'changed' names the call 9007199254740991, which was not made": [
        'beside:{"changed": [{"call": 9007199254740991, "bytes": 24}]}',
    ],
    "'overwrote' names the call -1, which was not made": [
        'beside:{"overwrote": [{"call": -1, "bytes": 24}]}',
    ],
}  # fmt: skip
"""The words of an error, and the replies that are one for that reason."""
FAULTS = IN_A_CALL | {fault: ("error", words) for words, faults in CONTRADICTIONS.items() for fault in faults}
