"""One JSON object of a dataset with its place: its fields by type, or an error that names them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, get_args

from ferret_core.datasets.base import Example, Role, Turn
from ferret_core.protocol.errors import FerretError, cut

MOST_NAMES = 12
LONGEST_NAME = 40
"""Maximum number of fields that an error names, and of characters of each."""
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
    """A record. ``option`` is the setting with the file's name, ``place`` the object's place in the file, empty for all
    of it.

    ``own``: the reader of the errors owns the data, so errors may name the existing fields. Every method raises
    ``dataset.invalid`` with file, place and field if the field is missing or of another type.
    """

    option: str
    path: str
    place: str
    fields: dict[str, Any]
    own: bool = False

    @property
    def others(self) -> str:
        """Description of the existing fields; only their number if the file may belong to someone else."""
        if not self.own:
            return f"the object has {len(self.fields)} others"
        names = [repr(cut(str(name), LONGEST_NAME)) for name in list(self.fields)[:MOST_NAMES]]
        return f"it has {', '.join(names) or 'no field'}{' and more' if len(self.fields) > MOST_NAMES else ''}"

    def text(self, field: str) -> str:
        """Returns the text under ``field``."""
        return self._text(field, self._value(field))

    def text_or_empty(self, field: str) -> str:
        """Returns :meth:`text`; a missing field and ``null`` count as the empty text."""
        return "" if self.fields.get(field) is None else self.text(field)

    def texts(self, field: str) -> tuple[str, ...]:
        """Returns the texts of the list under ``field``, at least one; a single text counts as a list of one."""
        value = self._value(field)
        if not isinstance(value, list):
            return (self._text(field, value),)
        if not value:
            raise self.invalid(field, "is an empty list: give at least one text")
        return tuple(self._text(f"{field}[{index}]", item) for index, item in enumerate(cast(list[object], value)))

    def records(self, field: str) -> list[Record]:
        """Returns the objects of the list under ``field``, at least one."""
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
        """Creates ``dataset.invalid`` about ``field`` of this object."""
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
        """Rejects half a surrogate pair, which JSON can contain but no tokenizer accepts."""
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise self.invalid(field, f"holds half a surrogate pair at character {error.start}: remove it") from error


def record_of(value: object, option: str, path: str, place: str) -> Record:
    """Converts ``value`` to a record; raises ``dataset.invalid`` if it is not an object."""
    if not isinstance(value, dict):
        raise invalid(option, path, f"{place or 'the file'} is {kind_of(value)}, not an object: write {{…}}")
    return Record(option, path, place, cast(dict[str, Any], value))


def invalid(option: str, path: str, message: str) -> FerretError:
    """Creates ``dataset.invalid`` about the file in ``option``."""
    return FerretError.of_field("dataset.invalid", option, path, message)


def kind_of(value: object) -> str:
    """Returns JSON's name for the type of ``value``, with its article; Python's name for types that JSON lacks."""
    return "null" if value is None else _KINDS.get(type(value), f"a {type(value).__name__}")


class Names(NamedTuple):
    """Names of a record's fields; ``label`` is None if no partition uses it.

    ``messages`` is a list of messages with ``role`` and ``content``, in place of instruction, input and output, as in
    Hugging Face TRL. ``unit`` is a text or a whole number that each record must have; None if records need none.
    """

    instruction: str = "instruction"
    input: str = "input"
    output: str = "output"
    label: str | None = "label"
    messages: str = "messages"
    unit: str | None = None


def examples_of(records: Iterable[Record], names: Names) -> list[Example]:
    """Converts records to examples; single ones may lack an input and a label.

    Training uses the first of a list of outputs. Raises ``dataset.invalid`` with place and field, also if no record has
    a renamed input or label.
    """
    unseen = {names.input, names.label} - {"input", "label", None}
    examples: list[Example] = []
    last: Record | None = None
    for last in records:
        unseen -= last.fields.keys()
        examples.append(_example(last, names)._replace(unit=_unit(last, names.unit)))
    if unseen and last is not None:
        missing = min(name for name in unseen if name is not None)
        raise invalid(last.option, last.path, f"no example has the field {missing!r} ({last.others}): correct its name")
    return examples


def _example(record: Record, names: Names) -> Example:
    label = "" if names.label is None else record.text_or_empty(names.label)
    if names.messages in record.fields:
        return _conversation(record, names, label)
    instruction = record.text(names.instruction)
    output, *accepted = record.texts(names.output)
    return Example(instruction, record.text_or_empty(names.input), output, label, tuple(accepted))


def _unit(record: Record, field: str | None) -> str:
    """Returns the unit's name; raises ``privacy.unit_missing``."""
    if field is None:
        return ""
    value = record.fields.get(field)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        problem = "is missing" if field not in record.fields else f"is {kind_of(value)}"
        message = f"{record.place} of {record.path}: field {field!r} {problem}: give every record a text or a number"
        raise FerretError.of_field("privacy.unit_missing", "privacy.unit", f"field:{field}", message)
    return str(value)


def _conversation(record: Record, names: Names, label: str) -> Example:
    """The last message is the answer, the one before it the question. Only the first may be the system's."""
    if names.instruction in record.fields:
        raise record.invalid(names.messages, f"and field {names.instruction!r} are both given: remove one")
    turns = [_turn(message) for message in record.records(names.messages)]
    roles = [turn.role for turn in turns]
    if "system" in roles[1:]:
        place = f"{names.messages}[{roles.index('system', 1)}]"
        raise record.invalid(place, "is a system message: only the first message can be one")
    if roles[-2:] != ["user", "assistant"]:
        message = "does not end with a message of the user and the assistant's answer: add the answer, or cut the rest"
        raise record.invalid(names.messages, message)
    *earlier, question, answer = turns
    return Example(question.content, "", answer.content, label, turns=tuple(earlier))


def _turn(message: Record) -> Turn:
    role, content = message.text("role"), message.text("content")
    if role not in get_args(Role):
        raise message.invalid("role", "is not system, user or assistant: use one of these, or remove the message")
    if not content.strip():
        raise message.invalid("content", "is empty: write a text, or remove the message")
    return Turn(cast(Role, role), content)
