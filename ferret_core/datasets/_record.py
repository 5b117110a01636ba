"""One JSON object of a dataset with the place it came from: its fields by type, or an error that names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from ferret_core.protocol.errors import FerretError, cut

MOST_NAMES = 12
LONGEST_NAME = 40
"""Of the fields that an error names: how many, and their characters."""
_KINDS: dict[type[object], str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


@dataclass(frozen=True)
class Record:
    """``option`` is the setting that named the file, ``place`` where in it the object stands; empty for all of it.

    ``own``: whoever reads the errors owns the data, so that these may name the fields there are. Every method raises
    ``dataset.invalid`` with file, place and field if the field is missing or of another type.
    """

    option: str
    path: str
    place: str
    fields: dict[str, Any]
    own: bool = False

    @property
    def others(self) -> str:
        """Which fields there are; only their number where they are part of a file that another may own."""
        if not self.own:
            return f"the object has {len(self.fields)} others"
        names = [repr(cut(str(name), LONGEST_NAME)) for name in list(self.fields)[:MOST_NAMES]]
        return f"it has {', '.join(names) or 'no field'}{' and more' if len(self.fields) > MOST_NAMES else ''}"

    def text(self, field: str) -> str:
        """The text under ``field``."""
        return self._text(field, self._value(field))

    def text_or_empty(self, field: str) -> str:
        """As :meth:`text`, but a missing field and ``null`` count as the empty text."""
        return "" if self.fields.get(field) is None else self.text(field)

    def texts(self, field: str) -> tuple[str, ...]:
        """The texts of the list under ``field``, at least one; a text alone counts as a list of one."""
        value = self._value(field)
        if not isinstance(value, list):
            return (self._text(field, value),)
        if not value:
            raise self.invalid(field, "is an empty list: give at least one text")
        return tuple(self._text(f"{field}[{index}]", item) for index, item in enumerate(cast(list[object], value)))

    def records(self, field: str) -> list[Record]:
        """The objects of the list under ``field``, at least one."""
        value = self._value(field)
        if not isinstance(value, list) or not value:
            what = "an empty list" if value == [] else kind_of(value)
            raise self.invalid(field, f"is {what}, not a list of objects")
        before = f"{self.place}, " if self.place else ""
        return [
            record_of(item, self.option, self.path, f"{before}{field}[{index}]")
            for index, item in enumerate(cast(list[object], value))
        ]

    def invalid(self, field: str, message: str) -> FerretError:
        """``dataset.invalid`` about ``field`` of this object."""
        place = f"{self.place}: " if self.place else ""
        return invalid(self.option, self.path, f"{place}field {field!r} {message}")

    def _value(self, field: str) -> object:
        if field not in self.fields:
            raise self.invalid(field, f"is missing ({self.others}): add it, or name another field")
        return self.fields[field]

    def _text(self, field: str, value: object) -> str:
        if not isinstance(value, str):
            raise self.invalid(field, f"is {kind_of(value)}, not a text: put it in quotes")
        if not value.isascii():
            self._check_encodable(field, value)
        return value

    def _check_encodable(self, field: str, value: str) -> None:
        """JSON can spell half a surrogate pair, which no tokenizer takes."""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.invalid(field, f"holds half a surrogate pair at character {error.start}: remove it") from error


def record_of(value: object, option: str, path: str, place: str) -> Record:
    """``value`` as a record; ``dataset.invalid`` if it is no object."""
    if not isinstance(value, dict):
        raise invalid(option, path, f"{place or 'the file'} is {kind_of(value)}, not an object: write {{…}}")
    return Record(option, path, place, cast(dict[str, Any], value))


def invalid(option: str, path: str, message: str) -> FerretError:
    """``dataset.invalid`` about the file that ``option`` names."""
    return FerretError.of_field("dataset.invalid", option, path, message)


def kind_of(value: object) -> str:
    """What JSON calls the type of ``value``, with its article; what Python calls it where JSON has no such type."""
    return "null" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")
