"""Reads JSON Lines: one UTF-8 JSON object per line, gzipped where the name ends in ``.gz``, blank lines allowed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from ferret_core.protocol.errors import FerretError

_KINDS: dict[type[object], str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class Line:
    """One object with the place it came from; ``option`` is the setting that named the file."""

    option: str
    path: str
    number: int
    fields: dict[str, Any]

    def text(self, field: str) -> str:
        """The text under ``field``; ``dataset.invalid`` if it is missing or no text."""
        if field not in self.fields:
            known = ", ".join(repr(name) for name in list(self.fields)[:10]) or "no fields"
            raise self._invalid(field, f"is missing (the line has {known}): add it, or name the field your file uses")
        value = self.fields[field]
        if not isinstance(value, str):
            raise self._invalid(field, f"is {_kind(value)}, not a text: put it in quotes")
        if not value.isascii():
            self._check_encodable(field, value)
        return value

    def text_or_empty(self, field: str) -> str:
        """As :meth:`text`, but a missing field and ``null`` count as the empty text."""
        return "" if self.fields.get(field) is None else self.text(field)

    def _check_encodable(self, field: str, value: str) -> None:
        """JSON can spell half a surrogate pair, which no tokenizer takes."""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self._invalid(field, f"holds half a surrogate pair at character {error.start}: remove it") from error

    def _invalid(self, field: str, message: str) -> FerretError:
        return invalid(self.option, self.path, f"line {self.number}: field {field!r} {message}")


def read_jsonl(path: str, option: str) -> Iterator[Line]:
    """The lines of the file, streamed; ``dataset.invalid`` names file, line and field, or that there is nothing."""
    empty = True
    try:
        with _open(path) as stream:
            for number, raw in enumerate(stream, start=1):
                if raw.strip():
                    empty = False
                    yield Line(option, path, number, _object(raw, option, path, number))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise invalid(option, path, f"cannot be read ({reason}): give the path of a readable file") from error
    if empty:
        raise invalid(option, path, "holds no examples: every line is blank")


def invalid(option: str, path: str, message: str) -> FerretError:
    """``dataset.invalid`` about the file that ``option`` names."""
    return FerretError.of_field("dataset.invalid", option, path, message)


def _open(path: str) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.endswith(".gz") else Path(path).open("rb")


def _object(raw: bytes, option: str, path: str, number: int) -> dict[str, Any]:
    try:
        value: object = json.loads(raw.decode("utf-8-sig").rstrip())
    except UnicodeDecodeError as error:
        message = f"line {number} is not UTF-8 at byte {error.start + 1}: save it so, or name a gzipped file .gz"
        raise invalid(option, path, message) from error
    except json.JSONDecodeError as error:
        message = f"line {number} is not whole JSON ({error.msg} at column {error.colno}): mend or remove the line"
        raise invalid(option, path, message) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a thousand brackets
        raise invalid(option, path, f"line {number} is no plain JSON ({error}): mend or remove the line") from error
    if not isinstance(value, dict):
        raise invalid(option, path, f"line {number} is {_kind(value)}: write one JSON object per line")
    return cast(dict[str, Any], value)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "null")
