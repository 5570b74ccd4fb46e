"""PyTorch .pt2: a zip file with the exported graph as JSON. No tensor is loaded and no pickle is read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..system.files import open_regular
from ..system.text import quote
from .lengths import bind_symbol, evaluate
from .model_graph import GraphOperation, ModelGraph
from .nodes import MAX_NODES, Binding, Dims, InferDst, ReshapeNode, UnreadableModel, check_rank, fail_at, parse_json

MAX_BYTES = 1 << 28
"""Bytes of JSON that are read, however small the zip file is."""
MAX_DEPTH = 50
"""Graphs inside one another."""
_TARGETS = ("view", "_unsafe_view", "reshape", "view_copy")
_TYPES = {
    1: "u8", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "f16", 7: "f32", 8: "f64", 12: "bool", 13: "bf16",
}  # fmt: skip


def read_pt2(path: Path, answer: InferDst) -> Pt2Program:
    """Return the graph of a file; UnreadableModel if its JSON is missing, too large or not from torch.export."""
    name, content = _read_program(path)
    program = parse_json(content, f"{name}: ")
    graph = _get(program, "graph_module", "graph")
    if not isinstance(graph, dict):
        raise UnreadableModel(f"{name}: there is no graph_module.graph; torch.export.save writes one")
    specs = _get(program, "graph_module", "signature", "input_specs")
    if isinstance(specs, list):  # it tells the inputs that a caller gives from weights
        graph = {**graph, "inputs": [_get(spec, "user_input", "arg") for spec in specs]}
    return Pt2Program(name, graph, answer)


def _get(value: Any, *keys: str) -> Any:
    """Return what is under keys in objects inside one another; None if it is not there."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _read_program(path: Path) -> tuple[str, bytes]:
    """Return the name and the bytes of the JSON in the zip file; at most MAX_BYTES are unpacked."""
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            name = next((each for each in archive.namelist() if _is_program(each)), None)
            if name is None:
                raise UnreadableModel("there is no serialized_exported_program.json or models/*.json in the zip file")
            with archive.open(name) as member:
                content = member.read(MAX_BYTES + 1)
    except UnreadableModel:
        raise
    except OSError as error:
        raise UnreadableModel(f"{error.strerror or error}; check the path") from None
    except Exception as error:  # each way to compress raises another class
        raise UnreadableModel(f"not a zip file, or cut short: {error}") from None
    if len(content) > MAX_BYTES:
        raise UnreadableModel(f"{name}: it unpacks to more than {MAX_BYTES:,} bytes")
    return name, content


def _is_program(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] == "serialized_exported_program.json" or (
        len(parts) > 1 and parts[-2] == "models" and parts[-1].endswith(".json")
    )


class Pt2Program:
    """An exported graph. Its symbols, such as `s0`, have one length everywhere."""

    def __init__(self, file: str, graph: Mapping[str, Any], answer: InferDst) -> None:
        self._file, self._graph, self._answer = file, graph, answer
        self.inputs: Mapping[str, Dims | None] = _Reader(file, graph, {}).flow(answer).inputs

    def nodes(self, binding: Binding) -> tuple[ReshapeNode, ...]:
        """Return the reshapes. A length that replaces a number, not a symbol, reaches as far as reshapes lead it."""
        symbols: dict[str, int] = {}
        for name, given in binding.items():
            check_rank(name, self.inputs[name], given)
            for k, (symbol, length) in enumerate(zip(self.inputs[name] or (), given, strict=False)):
                if isinstance(symbol, str) and isinstance(length, int):
                    bind_symbol(symbols, symbol, length, f"{name}[{k}]")
        return _Reader(self._file, self._graph, symbols).flow(self._answer).nodes(binding)


class _Reader:
    """Reads the nodes of a graph and of those inside it, with lengths for some of their symbols."""

    def __init__(self, file: str, graph: Mapping[str, Any], symbols: Mapping[str, int], prefix: str = "") -> None:
        self._file, self._graph, self._symbols, self._prefix = file, graph, symbols, prefix
        named = graph.get("sym_int_values")
        self._expressions: Mapping[str, Any] = named if isinstance(named, dict) else {}
        values = self._read_part("tensor_values", dict)
        self._types = {
            self._name_own(name): _TYPES.get(each["dtype"])
            for name, each in values.items()
            if isinstance(each, dict) and isinstance(each.get("dtype"), int)
        }
        self.dims: dict[str, Dims | None] = {
            self._name_own(name): self._read_sizes(each.get("sizes"), f"{prefix}tensor_values[{quote(name)}]")
            for name, each in values.items()
            if isinstance(each, dict)
        }

    def flow(self, answer: InferDst) -> ModelGraph:
        operations = [*self._list_operations()]
        inputs = self._list_names(self._read_part("inputs", list))
        return ModelGraph(operations, self.dims, {name: self.dims.get(name) for name in inputs}, answer)

    def _list_operations(self, depth: int = 0) -> Iterator[GraphOperation]:
        """Yield the operations. What enters a graph inside has its dims there; they hold if nothing else enters."""
        nodes = self._read_part("nodes", list)
        if len(nodes) > MAX_NODES or depth > MAX_DEPTH:
            most = f"{len(nodes):,} nodes, at most {MAX_NODES:,} are read" if depth <= MAX_DEPTH else "nested too deep"
            raise UnreadableModel(f"{self._file}: {self._prefix}nodes: {most}")
        for number, node in enumerate(nodes):
            place = f"{self._prefix}nodes[{number}]"
            operation = self._read_operation(node, place)
            yield operation
            for name, graph in _list_graphs(node["inputs"]):
                inner = _Reader(self._file, graph, self._symbols, f"{place}.{name}.")
                yield GraphOperation(operation.inputs, inner._list_names(inner._read_part("inputs", list)))
                yield from inner._list_operations(depth + 1)
                self.dims |= inner.dims

    def _name_own(self, name: str) -> str:
        """Return the name of a tensor that no graph outside has."""
        return f"\0{self._prefix}{name}" if self._prefix else name

    def _list_names(self, arguments: Any) -> tuple[str, ...]:
        return tuple(map(self._name_own, _list_tensors(arguments)))

    def _read_part(self, name: str, kind: type) -> Any:
        value = self._graph.get(name)
        if not isinstance(value, kind):
            fail_at(f"{self._file}: {self._prefix}graph.{name}", value, "torch.export writes something else there")
        return value

    def _read_operation(self, node: Any, place: str) -> GraphOperation:
        if not isinstance(node, dict) or not isinstance(node.get("inputs"), list):
            fail_at(f"{self._file}: {place}", node, "a node is an object with a list `inputs`")
        takes, makes = self._list_names(node["inputs"]), self._list_names(node.get("outputs"))
        parts = str(node.get("target", "")).split(".")
        is_reshape = parts[:3] == ["torch", "ops", "aten"] and len(parts) > 3 and parts[3] in _TARGETS
        is_reshape = is_reshape and parts[4:] != ["dtype"]  # that reads the same bytes as another type
        return GraphOperation(takes, makes, self._reshape(node, place, takes, makes) if is_reshape and takes else None)

    def _reshape(
        self, node: Mapping[str, Any], place: str, takes: tuple[str, ...], makes: tuple[str, ...]
    ) -> ReshapeNode:
        arguments = [_get(each, "arg") for each in node["inputs"]]
        shape = next((self._read_entries(each, place) for each in arguments[1:2] if isinstance(each, dict)), None)
        dst = self.dims.get(makes[0]) if makes else None
        why = "" if shape is not None else "shape is computed while it runs"
        return ReshapeNode(
            next(_list_tensors(node.get("outputs")), ""), place, None, self._types.get(takes[0]),
            self.dims.get(takes[0]), shape, False, dst, missing=why,
        )  # fmt: skip

    def _read_entries(self, argument: Mapping[str, Any], place: str) -> Dims | None:
        for key in ("as_ints", "as_sym_ints"):
            if isinstance(argument.get(key), list):
                return self._read_sizes(argument[key], f"{place}.{key}")
        return None

    def _read_sizes(self, value: Any, place: str) -> Dims | None:
        """Return lengths; one that is neither a number nor a product of symbols is not known."""
        if not isinstance(value, list) or len(value) > 1000:
            fail_at(f"{self._file}: {place}", value, "a list of at most 1000 lengths is wanted")
        return tuple(self._read_length(each, place) for each in value)

    def _read_length(self, size: Any, place: str) -> int | str | None:
        """Return a length, or its expression in symbols; None if it is another expression."""
        if isinstance(name := _get(size, "as_name"), str):
            size = self._expressions.get(name)
        if isinstance(expression := _get(size, "as_expr", "expr_str"), str):
            return evaluate(expression, self._symbols)
        size = size.get("as_int") if isinstance(size, dict) else size
        if size is not None and type(size) is not int:
            fail_at(f"{self._file}: {place}", size, "lengths are whole numbers")
        return size


def _list_graphs(arguments: list[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the graphs among the arguments of a node, such as the branches of torch.cond, with their names."""
    for number, argument in enumerate(arguments):
        held = _get(argument, "arg", "as_graph")
        if isinstance(graph := _get(held, "graph"), dict):
            name = str(held.get("name"))
            yield name if name.isidentifier() else f"inputs[{number}]", graph


def _list_tensors(value: Any) -> Iterator[str]:
    """Yield the names of the tensors, and of the lengths, anywhere in an argument; not those of graphs inside."""
    open_values = [value]
    while open_values:
        value = open_values.pop()
        if isinstance(value, list):
            open_values += reversed(value)
        elif isinstance(value, dict) and "arg" in value:
            open_values.append(value["arg"])  # its own name is that of a parameter
        elif isinstance(value, dict):
            yield from (value[key] for key in ("name", "as_name") if isinstance(value.get(key), str))
            open_values += [part for key, part in value.items() if key not in ("as_graph", "as_custom_obj")]
