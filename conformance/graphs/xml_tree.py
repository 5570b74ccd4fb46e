"""Read XML into a small tree with line numbers. Documents with a DOCTYPE, and so with entities, are not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn
from xml.parsers import expat

from .nodes import Dims, UnreadableModel, fail_at

MAX_DEPTH = 100
MAX_ELEMENTS = 5_000_000


class XmlElement:
    """An element, its attributes, its text and its line."""

    __slots__ = ("attributes", "children", "line", "tag", "text")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[XmlElement] = []
        self.text = ""

    def find(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the elements below by the tags on the way to them."""
        for child in self.children:
            if child.tag == tags[0]:
                if len(tags) == 1:
                    yield child
                else:
                    yield from child.find(*tags[1:])


def read_xml(content: bytes) -> XmlElement:
    """Return the root; UnreadableModel names the line and the byte of a mistake."""
    parser = expat.ParserCreate()
    top = XmlElement("", {}, 0)
    open_elements = [top]
    count = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MAX_ELEMENTS or len(open_elements) > MAX_DEPTH:
            limit = f"more than {MAX_ELEMENTS:,} elements" if count > MAX_ELEMENTS else "nested too deep"
            raise UnreadableModel(f"line {parser.CurrentLineNumber}: {limit}")
        element = XmlElement(tag, attributes, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def text(data: str) -> None:
        if open_elements[-1].tag == "dim":
            open_elements[-1].text += data

    def reject(*_: Any) -> None:
        raise UnreadableModel(f"line {parser.CurrentLineNumber}: a DOCTYPE, which can hold entities, is not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = reject
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        why = f"line {error.lineno}, byte {max(parser.ErrorByteIndex, 0)}: not XML: {expat.ErrorString(error.code)}"
        raise UnreadableModel(why) from None
    except (ValueError, LookupError) as error:  # an encoding that is not known
        raise UnreadableModel(f"line {parser.CurrentLineNumber}: not XML: {error}") from None
    return top.children[0]


def dims_of(port: XmlElement) -> Dims:
    """Return the dims of a port; -1 is a length that is not known."""
    lengths = [read_whole(dim, dim.text.strip(), -1) for dim in port.find("dim")]
    return tuple(length if length >= 0 else None for length in lengths)


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
