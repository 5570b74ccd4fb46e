"""The argument parser of the command: mistakes as one line, and readers of option values."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from ..system.json_forms import SHA256, is_date
from ..system.terminal import fold_lines
from ..system.text import describe_unknown, quote
from .arguments import Stop

_CHOICE = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """Raises Stop for a mistake; takes no abbreviated options, and no option twice but those of `many`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.suggest_on_error = False  # Python 3.15 would suggest a choice, too
        self.register("action", None, _Once)  # the action of an option that names none

    def format_help(self) -> str:
        return fold_lines(super().format_help())

    def error(self, message: str) -> NoReturn:
        name, _, rest = message.removeprefix("argument ").partition(": ")
        text = f"{name}: {rest}" if message.startswith("argument ") else message
        if choice := _CHOICE.fullmatch(rest):
            raise Stop(
                f"{name}: {describe_unknown('value', choice[1], re.findall(r'[A-Za-z][A-Za-z0-9-]*', choice[2]))}"
            )
        text = text.replace("expected one argument", "a value is missing").replace("OPTION", name)
        raise Stop(f"{text}; see `{self.prog} --help`")

    @property
    def options(self) -> list[str]:
        return [option for action in self._actions for option in action.option_strings if option.startswith("--")]

    def once(self, option: str, metavar: str | tuple[str, ...], help_: str, **more: Any) -> None:
        self.add_argument(option, metavar=metavar, help=help_, **more)

    def path(self, option: str, metavar: str, help_: str, *short: str, **more: Any) -> None:
        self.add_argument(option, *short, metavar=metavar, help=help_, type=path, **more)

    def many(self, option: str, metavar: str, help_: str, **more: Any) -> None:
        """Add an option that may be repeated; its values are a list."""
        self.add_argument(option, action="append", metavar=metavar, help=f"{help_}; may be repeated", **more)


class _Once(argparse.Action):
    """An argument with one value. To give an option twice is an error, so that no value is dropped silently."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        given = vars(namespace).setdefault("given_options", set())
        if self.option_strings and self.dest in given:
            parser.error(f"{option_string} is given twice; give it once")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


def path(text: str) -> Path:
    """Read a path. The empty text is an error: --out "$OUT" with no OUT set would name the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty; name a file or a folder")
    return Path(text)


def existing_file(text: str) -> Path:
    if not path(text).exists() or path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{quote(text)} is no file; check the path")
    return path(text)


def output_file(text: str) -> Path:
    if path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{quote(text)} is a folder; name a file")
    return path(text)


def one_line(text: str) -> str:
    """Read a short name that shows on one line."""
    if not text.strip() or not text.isprintable() or len(text) > 120:
        raise argparse.ArgumentTypeError(
            f"{quote(text)} is not one line of 1 to 120 characters; write OPTION 'A. Name'"
        )
    return text.strip()


MAX_WHOLE = 10**9
"""The highest number of an option: the name of a drawn row has at most nine digits."""


def whole(text: str, least: int = 0) -> int:
    if not (text.isdecimal() and len(text) <= 10 and least <= int(text) <= MAX_WHOLE):
        raise argparse.ArgumentTypeError(f"{quote(text)} is not a whole number from {least} to 10^9; write OPTION 2")
    return int(text)


positive = partial(whole, least=1)


def shard(text: str) -> str:
    """Read `1/3`, the first of three parts."""
    part, _, count = text.partition("/")
    is_short = len(text) <= len("10000/10000")
    if not (is_short and part.isdecimal() and count.isdecimal() and 1 <= int(part) <= int(count) <= 10000):
        raise argparse.ArgumentTypeError(f"{quote(text)} is no part of the rows; write --shard 1/3")
    return f"{int(part)}/{int(count)}"


def days(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= 1096 and len(text) <= 9):
        raise argparse.ArgumentTypeError(f"{quote(text)} is no number of days from 1 to 1096, which are three years")
    return int(text)


def day(text: str) -> datetime:
    if not is_date(text):
        raise argparse.ArgumentTypeError(f"{quote(text)} is no day; write OPTION 2026-11-25")
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def nonce(text: str) -> str:
    if not SHA256.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no nonce; write 64 of the digits 0 to 9 and a to f")
    return text


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds between 0 and 10^6; write OPTION 20")
    return value
