"""A program that speaks the protocol and misbehaves in one way: `python misbehaving.py FAULT [PHASE [second]]`.

`result:{...}` and `beside:{...}` put into the result of a call, or beside it, what they hold; `shares:{...}` says that
it shares memory, looks at none, and puts what it holds into the result of a call.

It imports nothing of ours, as a stranger's would, and answers every call with src's elements as the dims of shape.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FAULT = sys.argv[1] if len(sys.argv) > 1 else "none"
PHASE = sys.argv[2] if len(sys.argv) > 2 else "run"
IN, OUT = sys.stdin.buffer, sys.stdout.buffer
SHARES = FAULT == "takes-what-was-not-offered" or FAULT.startswith("shares:")
SECOND = len(sys.argv) > 3
"""Whether only the second call goes wrong."""
WIDTH = {"f32": 4, "f16": 2, "bf16": 2, "s64": 8, "s32": 4}


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def reply(number: Any, record: Mapping[str, Any], payload: bytes = b"") -> None:
    write(json.dumps({"id": number, **record}).encode() + b"\n" + payload)


def answer(request: Mapping[str, Any], programs: dict[int, Any]) -> tuple[dict[str, Any], bytes]:
    match request["do"]:
        case "hello":
            version = "reshape-conformance/99" if FAULT == "wrong-version" else "reshape-conformance/1"
            return {"result": {"protocol": version, "shared_memory": SHARES}}, b""
        case "describe":
            count = starts() if FAULT in ("another-name", "dies-after-first-start") else 1
            if FAULT == "dies-after-first-start" and count > 1:
                sys.exit("no licence left")
            operations = ["StaticReshape"] if FAULT != "claims-nonsense" else ["Reshpae"]
            name = f"misbehaving-{count}" if FAULT == "another-name" else "misbehaving"
            more = json.loads(Path(FAULT[10:]).read_text()) if FAULT.startswith("describes:") else {}
            return {"result": {"name": name, "version": "1", "operations": operations, **more}}, b""
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
    with Path("starts").open("a") as file:
        file.write(".")
    return len(Path("starts").read_text())


def call(request: Mapping[str, Any], programs: dict[int, Any]) -> tuple[dict[str, Any], bytes]:
    src, *_ = request["tensors"]
    piped = (tensor["bytes"] for tensor in request["tensors"] if "at" not in tensor)
    memory = IN.read(sum(piped))[: src["bytes"]]
    shape = programs[request["program"]][-1]["shape"]["values"]
    count = WIDTH[src["type"]]
    for length in src["dims"]:
        count *= length
    data = memory[src["offset"] : src["offset"] + count]
    volume = 1
    for length in shape:
        volume *= length
    if volume * WIDTH[src["type"]] != count:
        return {"rejected": {"stage": "run", "message": "another volume"}}, b""
    result = {"type": src["type"], "dims": shape, "bytes": count}
    calls.append(volume)
    return misanswered(result, data, memory) if not SECOND or len(calls) == 2 else ({"result": result}, data)


calls: list[int] = []
"""The volumes that were answered so far."""


def misanswered(  # noqa: PLR0912 - a list
    result: dict[str, Any], data: bytes, memory: bytes
) -> tuple[dict[str, Any], bytes]:
    where, _, what = FAULT.partition(":")
    match where:
        case "result":
            return {"result": {**result, **json.loads(what)}}, data
        case "beside":
            return {"result": result, **json.loads(what)}, data
        case "shares":
            return {"result": {**result, **json.loads(what)}}, b""
        case "dims-of":
            return {"result": {**result, "dims": json.loads(Path(what).read_text())}}, data
        case "sends-much-for-little":
            return {"result": {**result, "bytes": 2 << 20}}, bytes(2 << 20)
        case "sends-as-much-as-it-likes":
            return {"result": {**result, "bytes": 128 << 20, "dims": [32 << 20]}}, bytes(128 << 20)
        case "answers-with-more":
            return {"result": {**result, "bytes": 16 << 20, "dims": [4 << 20]}}, bytes(16 << 20)
        case "changes-src-often":
            wrote = [{"tensor": 0, "bytes": len(memory)}] * 1000
            return {"result": result, "wrote": wrote}, data + memory * 1000
        case "short-payload":
            return {"result": result}, data[:-1]
        case "long-payload":
            return {"result": result}, data + b"more"
        case "wrong-byte-order":
            width = WIDTH[result["type"]]
            return {"result": result}, b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))
        case "changed-input":
            wrote = [{"tensor": 0, "bytes": len(memory)}]
            return {"result": result, "wrote": wrote}, data + memory[:64] + b"\xff" + memory[65:]
        case "wrote-nonsense":
            return {"result": result, "wrote": [{"tensor": 9, "bytes": 4}]}, data + b"...."
        case "wrong-dims":
            return {"result": result | {"dims": result["dims"][::-1]}}, data
        case "dims-against-bytes":
            return {"result": result | {"dims": [99]}}, data
        case "enormous":
            return {"result": result | {"dims": [1 << 60], "bytes": 1 << 62}}, data
        case "unknown-type":
            return {"result": result | {"type": "q7"}}, data
        case "two-kinds":
            return {"result": result, "rejected": {"stage": "run", "message": "both"}}, data
        case "no-kind":
            return {}, b""
    return {"result": result}, data


def misbehave(number: Any, record: Mapping[str, Any], payload: bytes) -> None:  # noqa: PLR0912, PLR0915 - a list
    """Replies in the wrong way."""
    line = json.dumps({"id": number, **record}).encode() + b"\n"
    match FAULT:
        case "silent":
            time.sleep(60)
        case "slow":
            time.sleep(0.2)
            write(line + payload)
        case "late":
            time.sleep(1.5)
            write(line + payload)
        case "partial-line":
            write(line[:9])
            time.sleep(60)
        case "two-lines-at-once":
            write(line + line)
        case "duplicate":
            write(line + payload)
            time.sleep(0.05)
            write(line)
        case "byte-by-byte":
            for byte in line + payload:
                write(bytes([byte]))
        case "crlf":
            write(line[:-1] + b"\r\n" + payload)
        case "bom":
            write(b"\xef\xbb\xbf" + line + payload)
        case "invalid-utf8":
            write(line.replace(b"{", b'{"\xff":1,', 1) + payload)
        case "invalid-json":
            write(line.replace(b":", b"=") + payload)
        case "no-object":
            write(b"[1]\n")
        case "huge-line":
            for _ in range(4096):
                write(b"x" * 4096)
            time.sleep(60)
        case "says-much":
            reply(number, {"error": {"message": "much " * 100_000}})
        case "says-error":
            reply(number, {"error": {"message": "not today"}})
        case "says-memory":
            reply(number, {"error": {"message": "not today", "memory": True}})
        case "says-rejected":
            reply(number, {"rejected": {"stage": "compile", "message": "not today"}})
        case "says-unsupported":
            reply(number, {"unsupported": {"feature": "not today"}})
        case "trails":
            write(line[:-1] + b" Using 4 threads\n" + payload)
        case "two-objects":
            write(line[:-1] + line[:-1] + b"\n" + payload)
        case "wrong-id":
            reply(number + 1, record, payload)
        case "text-id":
            reply(str(number), record, payload)
        case "prints":
            write(b"Using 4 threads\n" + line + payload)
        case "exits":
            sys.exit(0)
        case "dies":
            sys.exit("out of licences")
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "child-holds-stdout":
            subprocess.Popen(["sleep", "60"])
            os._exit(3)
        case "child-leaves":
            middle = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=2).pid)"
            left = subprocess.run([sys.executable, "-S", "-c", middle], check=True, stdout=subprocess.PIPE)
            Path("left").write_bytes(left.stdout)
            write(line + payload)
        case "floods-stderr":
            for _ in range(4000):
                sys.stderr.write("x" * 1000 + "\n")
            write(line + payload)
        case "closes-stdout":
            os.close(1)
            time.sleep(60)
        case _:
            write(line + payload)


def main() -> None:
    programs: dict[int, Any] = {}
    if FAULT == "speaks-first":
        reply(0, {"result": {}})
    for text in IN:
        request = json.loads(text)
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
