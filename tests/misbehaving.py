"""A program that speaks the protocol and misbehaves in one way: `python misbehaving.py FAULT [PHASE [second]]`.

`result:{...}` and `beside:{...}` put into the result of a call, or beside it, what they hold; `shares:{...}` says that
it shares memory, looks at none, and puts what it holds into the result of a call.

Like a stranger's, it imports nothing of the suite, and little else, because it is started often. It answers every call
with src's elements as the dims of shape.
"""

from __future__ import annotations

import math
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing these takes longer than all that this program does
    from collections.abc import Callable, Mapping
    from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else "none"
PHASE = sys.argv[2] if len(sys.argv) > 2 else "run"
IN, OUT = sys.stdin.buffer, sys.stdout.buffer
SHARES = FAULT == "takes-what-was-not-offered" or FAULT.startswith("shares:")
SECOND = len(sys.argv) > 3
"""Whether only the second call goes wrong."""
WIDTH = {"f32": 4, "f16": 2, "bf16": 2, "s64": 8, "s32": 4}


class Json(str):
    """A text that is JSON already."""


def parse(text: str | bytes) -> Any:
    """Read JSON as Python, which is the same for all that is read here; to import `json` takes as long as to start."""
    return eval(text, {"true": True, "false": False, "null": None})


def encode(value: Any) -> str:
    """Write JSON of texts that need no escapes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {encode(one)}' for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(encode, value)) + "]"
    if isinstance(value, str):
        return value if isinstance(value, Json) else f'"{value}"'
    return {"True": "true", "False": "false", "None": "null"}.get(repr(value)) or repr(value)


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def reply(number: Any, record: Mapping[str, Any], payload: bytes = b"") -> None:
    write(encode({"id": number, **record}).encode() + b"\n" + payload)


def answer(request: Mapping[str, Any], programs: dict[int, Any]) -> tuple[dict[str, Any], bytes]:
    match request["do"]:
        case "hello":
            version = "reshape-conformance/99" if FAULT == "wrong-version" else "reshape-conformance/1"
            return {"result": {"protocol": version, "shared_memory": SHARES}}, b""
        case "describe":
            count = starts() if FAULT in ("another-name", "dies-after-first-start") else 1
            if FAULT == "dies-after-first-start" and count > 1:
                sys.exit("no licence left")
            name = f"misbehaving-{count}" if FAULT == "another-name" else "misbehaving"
            more = parse(read(FAULT[10:])) if FAULT.startswith("describes:") else {}
            return {"result": {"name": name, "version": "1", "operations": ["StaticReshape"], **more}}, b""
        case "compile":
            programs[request["program"]] = request["graph"]["nodes"]
            return {"result": {}}, b""
        case "run":
            return call(request, programs)
        case "close":
            del programs[request["program"]]
    return {"result": {}}, b""


def starts() -> int:
    """How often a program in this folder was started."""
    with open("starts", "a") as file:
        file.write(".")
    return len(read("starts"))


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def call(request: Mapping[str, Any], programs: dict[int, Any]) -> tuple[dict[str, Any], bytes]:
    src, *_ = request["tensors"]
    piped = (tensor["bytes"] for tensor in request["tensors"] if "at" not in tensor)
    memory = IN.read(sum(piped))[: src["bytes"]]
    shape = programs[request["program"]][-1]["shape"]["values"]
    count = WIDTH[src["type"]] * math.prod(src["dims"])
    data = memory[src["offset"] : src["offset"] + count]
    volume = math.prod(shape)
    if volume * WIDTH[src["type"]] != count:
        return {"rejected": {"stage": "run", "message": "another volume"}}, b""
    result = {"type": src["type"], "dims": shape, "bytes": count}
    calls.append(volume)
    return misanswered(result, data, memory) if not SECOND or len(calls) == 2 else ({"result": result}, data)


calls: list[int] = []
"""The volumes that were answered so far."""


def misanswered(result: dict[str, Any], data: bytes, memory: bytes) -> tuple[dict[str, Any], bytes]:
    """The wrong answer to a call, or the right one where the fault is not in the answer."""
    where, _, what = FAULT.partition(":")
    right, width = {"result": result}, WIDTH[result["type"]]

    def changed(more: Mapping[str, Any], payload: bytes = data) -> tuple[dict[str, Any], bytes]:
        return {"result": {**result, **more}}, payload

    def wrote(*tensors: Mapping[str, int], payload: bytes = memory) -> tuple[dict[str, Any], bytes]:
        return {"result": result, "wrote": tensors}, data + payload

    whole = {"tensor": 0, "bytes": len(memory)}
    wrong: dict[str, Callable[[], tuple[dict[str, Any], bytes]]] = {
        "result": lambda: changed(parse(what)),
        "beside": lambda: ({**right, **parse(what)}, data),
        "shares": lambda: changed(parse(what), b""),
        "dims-of": lambda: changed({"dims": Json(read(what))}),
        "sends-much-for-little": lambda: changed({"bytes": 2 << 20}, bytes(2 << 20)),
        "sends-as-much-as-it-likes": lambda: changed({"bytes": 128 << 20, "dims": [32 << 20]}, bytes(128 << 20)),
        "answers-with-more": lambda: changed({"bytes": 16 << 20, "dims": [4 << 20]}, bytes(16 << 20)),
        "changes-src-often": lambda: wrote(*[whole] * 1000, payload=memory * 1000),
        "short-payload": lambda: (right, data[:-1]),
        "long-payload": lambda: (right, data + b"more"),
        "wrong-byte-order": lambda: (right, b"".join(data[at:at + width][::-1] for at in range(0, len(data), width))),
        "changed-input": lambda: wrote(whole, payload=memory[:64] + b"\xff" + memory[65:]),
        "wrote-nonsense": lambda: wrote({"tensor": 9, "bytes": 4}, payload=b"...."),
        "wrong-dims": lambda: changed({"dims": result["dims"][::-1]}),
        "dims-against-bytes": lambda: changed({"dims": [99]}),
        "enormous": lambda: changed({"dims": [1 << 60], "bytes": 1 << 62}),
        "unknown-type": lambda: changed({"type": "q7"}),
        "two-kinds": lambda: ({**right, "rejected": {"stage": "run", "message": "both"}}, data),
        "no-kind": lambda: ({}, b""),
    }  # fmt: skip
    return wrong[where]() if where in wrong else (right, data)


SAYS: dict[str, dict[str, Any]] = {
    "says-much": {"error": {"message": "much " * 100_000}},
    "says-error": {"error": {"message": "not today"}},
    "says-memory": {"error": {"message": "not today", "memory": True}},
    "says-rejected": {"rejected": {"stage": "compile", "message": "not today"}},
    "says-unsupported": {"unsupported": {"feature": "not today"}},
    "cannot-start": {"cannot_start": "not today"},
}
DELAYS = {"slow": 0.2, "late": 1.5, "silent": 60}


def misbehave(number: Any, record: Mapping[str, Any], payload: bytes) -> None:  # noqa: PLR0912 - a list
    """Reply in the wrong way."""
    line = encode({"id": number, **record}).encode() + b"\n"
    lines = {
        "two-lines-at-once": line + line,
        "crlf": line[:-1] + b"\r\n",
        "bom": b"\xef\xbb\xbf" + line,
        "invalid-utf8": line.replace(b"{", b'{"\xff":1,', 1),
        "invalid-json": line.replace(b":", b"="),
        "no-object": b"[1]\n",
        "trails": line[:-1] + b" Using 4 threads\n",
        "two-objects": line[:-1] + line[:-1] + b"\n",
        "key-twice": line[:-2] + b', "id": 1}\n',
        "prints": b"Using 4 threads\n" + line,
    }
    time.sleep(DELAYS.get(FAULT, 0))
    match FAULT:
        case "silent":
            return
        case "partial-line":
            write(line[:9])
            time.sleep(60)
        case "huge-line":
            for _ in range(4096):
                write(b"x" * 4096)
            time.sleep(60)
        case "many-keys":
            write(line[:-2] + b"".join(b',"%d":0' % (number % 39_999) for number in range(40_000)) + b"}\n")
        case "duplicate":
            write(line + payload)
            time.sleep(0.05)
            write(line)
        case "byte-by-byte":
            for byte in line + payload:
                write(bytes([byte]))
        case "wrong-id" | "text-id":
            reply(number + 1 if FAULT == "wrong-id" else str(number), record, payload)
        case "exits" | "dies":
            sys.exit(0 if FAULT == "exits" else "out of licences")
        case "segfault":
            import signal

            os.kill(os.getpid(), signal.SIGSEGV)
        case "child-holds-stdout":
            os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")
            os._exit(3)
        case "floods-stderr":
            sys.stderr.write(("x" * 1000 + "\n") * 4000)
            write(line + payload)
        case "closes-stdout":
            os.close(1)
            time.sleep(60)
        case fault if fault in SAYS:
            reply(number, SAYS[fault])
        case fault:
            write(lines.get(fault, line) + (payload if fault not in ("two-lines-at-once", "no-object") else b""))


def main() -> None:
    programs: dict[int, Any] = {}
    if FAULT == "speaks-first":
        reply(0, {"result": {}})
    for text in IN:
        request = parse(text)
        if FAULT == "floods" and calls and request["do"] == "run":
            while True:
                os.write(1, b"\n" * 65536)
        record, payload = answer(request, programs)
        if request["do"] in PHASE.split("+") and (not SECOND or len(calls) == 2):
            misbehave(request["id"], record, payload)
        else:
            reply(request["id"], record, payload)
        if FAULT == "unasked" and request["do"] == "describe":
            reply(request["id"] + 1, {"result": {}})
        if request["do"] == "stop":
            return


if __name__ == "__main__":
    main()

GIVES_UP = """
import json, pathlib, sys
begun = pathlib.Path(sys.argv[1])
if begun.exists():
    sys.exit("no device any more")
for line in sys.stdin:
    request = json.loads(line)
    result = {"protocol": request.get("protocol")}
    if request["do"] == "describe":
        result = {"name": "gives up", "version": "1", "operations": ["StaticReshape"]}
    if request["do"] in ("compile", "run"):
        begun.touch()
        sys.exit(1)
    print(json.dumps({"id": request["id"], "result": result}), flush=True)
"""
"""A program that ends at its first call, and cannot be started again."""
