"""Read XML into a tree with line numbers. Documents with a DOCTYPE, and so with entities, are not read."""

from __future__ import annotations

from typing import Any, NoReturn, cast
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from .nodes import Dims, UnreadableModel, fail_at

MAX_DEPTH = 100
MAX_ELEMENTS = 5_000_000


class XmlElement(Element):
    __slots__ = ("line",)
    line: int

    def all(self, path: str) -> list[XmlElement]:
        """Return the elements below by the tags on the way to them."""
        return cast("list[XmlElement]", self.findall(path))


def read_xml(content: bytes) -> XmlElement:
    """Return the root; UnreadableModel names the line and the byte of a mistake."""
    parser, builder = expat.ParserCreate(), TreeBuilder(XmlElement)
    count = depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, depth
        count, depth = count + 1, depth + 1
        if count > MAX_ELEMENTS or depth > MAX_DEPTH:
            limit = f"more than {MAX_ELEMENTS:,} elements" if count > MAX_ELEMENTS else "nested too deep"
            raise UnreadableModel(f"line {parser.CurrentLineNumber}: {limit}")
        cast("XmlElement", builder.start(tag, attributes)).line = parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def reject(*_: Any) -> None:
        raise UnreadableModel(f"line {parser.CurrentLineNumber}: a DOCTYPE, which can hold entities, is not read")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = reject
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        why = f"line {error.lineno}, byte {max(parser.ErrorByteIndex, 0)}: not XML: {expat.ErrorString(error.code)}"
        raise UnreadableModel(why) from None
    except (ValueError, LookupError) as error:  # an encoding that is not known
        raise UnreadableModel(f"line {parser.CurrentLineNumber}: not XML: {error}") from None
    return cast("XmlElement", builder.close())


def dims_of(port: XmlElement) -> Dims | None:
    """Return the dims of a port; -1 is a length that is not known. A port without dims may be of any rank."""
    lengths = [read_whole(dim, (dim.text or "").strip(), -1) for dim in port.all("dim")]
    return tuple(length if length >= 0 else None for length in lengths) or None


def read_whole(element: XmlElement, text: str, least: int = 0) -> int:
    """Return a whole number of at least `least`; UnreadableModel names the element's line."""
    try:
        number = int(text) if len(text) < 20 else least - 1
    except ValueError:
        number = least - 1
    if number < least:
        fail(element, text, "a whole number is wanted")
    return number


def fail(element: XmlElement, value: object, why: str) -> NoReturn:
    fail_at(f"line {element.line}", value, why)
