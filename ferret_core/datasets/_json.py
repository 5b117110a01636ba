"""Reading of the files in a dataset's options, such as JSON, gzipped if the name ends in ``.gz``: a whole document, or
one object per line."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import cast

from ferret_core.datasets._hub import OPTION
from ferret_core.datasets._record import Record, invalid, kind_of, record_of
from ferret_core.system import untrusted_files


@contextmanager
def opened(path: str, option: str) -> Generator[untrusted_files.BoundedFile]:
    """Opens the file at ``path``; raises ``dataset.invalid`` about ``option`` if it is unreadable or not allowed."""
    try:
        with untrusted_files.open_untrusted(path, anywhere=option == OPTION) as file:
            yield file
    except untrusted_files.UntrustedFileError as error:
        raise invalid(option, path, str(error)) from error


def require_allowed(path: str, option: str) -> None:
    """Raises ``dataset.invalid`` if the path must not be accessed."""
    try:
        untrusted_files.allowed(path)
    except untrusted_files.UntrustedFileError as error:
        raise invalid(option, path, str(error)) from error


def read_lines(path: str, option: str) -> Iterator[Record]:
    """Yields the objects of a JSON Lines file, streamed; blank lines are allowed.

    Raises ``dataset.invalid`` with file and line, also for a file without objects.
    """
    empty = True
    with opened(path, option) as file:
        for number, raw in enumerate(file.lines(), start=1):
            if raw.strip():
                empty = False
                yield record_of(_parse(raw, option, path, number), option, path, f"line {number}")
    if empty:
        raise invalid(option, path, "holds no examples: every line is blank")


def read_object(path: str, option: str) -> Record:
    """Returns the file's one JSON object; raises ``dataset.invalid`` for any other content."""
    return record_of(_document(path, option), option, path, "")


def read_list(path: str, option: str) -> Iterator[Record]:
    """Yields the objects of the file's one JSON list, at least one; raises ``dataset.invalid`` for other content."""
    items = _document(path, option)
    if not isinstance(items, list):
        raise invalid(
            option, path, f"the file is {kind_of(items)}: write a JSON list, or rename a JSON Lines file to .jsonl"
        )
    if not items:
        raise invalid(option, path, "holds no examples: the list is empty")
    for number, item in enumerate(cast(list[object], items), start=1):
        yield record_of(item, option, path, f"item {number}")


def _document(path: str, option: str) -> object:
    with opened(path, option) as file:
        return _parse(file.whole(), option, path)


def _parse(raw: bytes, option: str, path: str, line: int = 1) -> object:
    """Parses the JSON value in ``raw``, which begins in this line of the file."""
    try:
        return json.loads(raw.decode("utf-8-sig").rstrip())
    except UnicodeDecodeError as error:
        line += raw.count(b"\n", 0, error.start)
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        message = f"line {line} is not UTF-8 at byte {byte}: save the file as UTF-8, or rename a gzipped file to .gz"
        raise invalid(option, path, message) from error
    except json.JSONDecodeError as error:
        where = f"{error.msg} at column {error.colno}"
        message = f"line {line + error.lineno - 1} is not valid JSON ({where}): fix or remove the line"
        raise invalid(option, path, message) from error
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else "a number with too many digits"
        raise invalid(option, path, f"line {line} cannot be read as JSON ({why}): fix or remove the line") from error
