"""Read parts of a reply; Fault if a part is not in the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...model import Rejected, RemoteError, Tensor, Unsupported
from ...model.types import WIDTH
from ...plan.memory import dims_error, size_of
from ...system.text import quote
from .messages import Fault, parse_integer

_KINDS = ("result", "rejected", "unsupported", "error")


def kind_of(reply: Mapping[str, Any]) -> str:
    if len(reply) == (3 if "addresses" in reply else 2) and type(reply.get("result")) is dict:
        return "result"
    kinds = [kind for kind in _KINDS if kind in reply]
    if len(kinds) != 1:
        raise Fault(f"a reply needs one of {', '.join(_KINDS)}, and it has {', '.join(kinds) or 'none'}")
    if not isinstance(reply[kinds[0]], dict):
        raise Fault(f"{kinds[0]!r} is {quote(reply[kinds[0]])}, but should be an object")
    return kinds[0]


def result_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a reply, or raise the exception that the reply stands for."""
    kind = kind_of(reply)
    body: dict[str, Any] = reply[kind]
    match kind:
        case "rejected":
            raise Rejected(str(body.get("stage")), str(body.get("message", "")))
        case "unsupported":
            raise Unsupported(str(body.get("feature")))
        case "error":
            message = str(body.get("message", ""))
            raise MemoryError(message) if body.get("memory") is True else RemoteError(message)
    return body


def type_and_dims(result: Mapping[str, Any], size: int) -> tuple[str, tuple[int, ...]] | RemoteError:
    """Return the type and dims of a result, or why no tensor of that many bytes can have them."""
    type_, dims = result.get("type"), result.get("dims")
    if not isinstance(type_, str) or type_ not in WIDTH:
        return RemoteError(f"the result's type is {quote(type_)}, which is no element type")
    if not isinstance(dims, list):
        return RemoteError(f"the result's dims are {quote(dims)}, but should be a list")
    try:
        whole = tuple([n if type(n) is int else parse_integer(n) for n in dims])
    except Fault as fault:
        return RemoteError(f"the result's dims: {fault}")
    if problem := dims_error(whole):
        return RemoteError(f"the result has {problem}")
    due = size_of(type_, whole)
    if size != due:
        return RemoteError(f"the result has {size} bytes for {type_}{quote(list(whole))}, which takes {due}")
    return type_, whole


def addressed_tensors(reply: Mapping[str, Any], tensors: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
    """Return each tensor with its address in the worker; none if the reply does not give them."""
    addresses = reply.get("addresses")
    if not isinstance(addresses, list) or [*map(type, addresses)] != [int] * len(tensors):
        return []
    return list(zip(addresses, tensors, strict=True))


def listed_objects(reply: Mapping[str, Any], key: str, name: str) -> list[tuple[Any, Mapping[str, Any]]]:
    """Return the objects listed under a key, each with its value of `name`; Fault if two have the same number there."""
    objects = reply.get(key, [])
    if not isinstance(objects, list) or not all(isinstance(entry, dict) for entry in objects):
        raise Fault(f"{key!r} is {quote(objects)}, but should be a list of objects")
    named = [(entry.get(name), entry) for entry in objects]
    numbers = [number for number, _ in named if type(number) is int]
    if len(set(numbers)) < len(numbers):
        raise Fault(f"{key!r} names the same {name} twice")
    return named
