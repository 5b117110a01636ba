"""The tasks of Super-NaturalInstructions, in three forms: official release, one file, hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ferret_core.datasets._hub import OPTION, download_all
from ferret_core.datasets._json import opened, read_lines, read_object
from ferret_core.datasets._record import Record, invalid

Split = Literal["train", "test"]

_NAME = re.compile(r"task\d+\w*")


class Instance(NamedTuple):
    """One input and the accepted answers, at least one."""

    input: str
    answers: tuple[str, ...]


class Task(NamedTuple):
    """A task with its official name, e.g. ``task001_quoref_question_generation``, and its instruction."""

    name: str
    definition: str
    instances: list[Instance]


def from_release(folder: Path, split: Split, names: str | None) -> Iterator[Task]:
    """Reads the official layout: ``tasks/<name>.json`` for every line of ``names`` or else of ``splits/default``'s
    list."""
    path = names or str(folder / "splits" / "default" / f"{split}_tasks.txt")
    option = f"dataset.{split}_tasks" if names else "dataset.tasks"
    for number, name in _listed(path, option):
        file = folder / "tasks" / f"{name}.json"
        if not _NAME.fullmatch(name):
            raise invalid(option, path, f"line {number} is not the name of a task: correct or remove the line")
        if not file.is_file():
            message = f"line {number} names {name!r}, but there is no {file}: correct or remove the line"
            raise invalid(option, path, message)
        yield _task(name, read_object(str(file), "dataset.tasks"))


def from_file(path: str, split: Split, names: str | None) -> Iterator[Task]:
    """Reads JSON Lines with one task each and its name under ``task``: the tasks in ``names``, or else of this
    split."""
    if names is None:
        yield from (_named(line) for line in read_lines(path, "dataset.tasks") if line.text("split") == split)
        return
    listed = {name: number for number, name in _listed(names, f"dataset.{split}_tasks")}
    found = {task.name: task for task in map(_named, read_lines(path, "dataset.tasks")) if task.name in listed}
    for name, number in listed.items():
        if name not in found:
            message = f"line {number} names {_told(name)}, which is not in {path}: correct or remove the line"
            raise invalid(f"dataset.{split}_tasks", names, message)
        yield found[name]


def from_hub(repository: str, revision: str | None, split: Split) -> Iterator[Task]:
    """Reads one JSON Lines file per task under ``train/`` and ``test/``, with a line per answer: ids may repeat."""
    for path in download_all(repository, revision, f"{split}/*.jsonl"):
        lines = list(read_lines(path, OPTION))
        answers: dict[str, list[str]] = {}
        inputs: dict[str, str] = {}
        for line in lines:
            inputs.setdefault(line.text("id"), line.text("inputs"))
            answers.setdefault(line.text("id"), []).append(line.text("targets"))
        instances = [Instance(text, tuple(answers[identity])) for identity, text in inputs.items()]
        yield Task(lines[0].text("task_name"), lines[0].text("definition"), instances)


def _listed(path: str, option: str) -> Sequence[tuple[int, str]]:
    """Returns every name in the list with its line; raises ``dataset.invalid`` for an empty list or a repeated name."""
    with opened(path, option) as file:
        lines = [_decoded(raw, number, path, option) for number, raw in enumerate(file.lines(), start=1)]
    names = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not names:
        raise invalid(option, path, "names no task: write one name per line")
    first: dict[str, int] = {}
    for number, name in names:
        if first.setdefault(name, number) != number:
            raise invalid(
                option, path, f"line {number} names {_told(name)} again, after line {first[name]}: remove one"
            )
    return names


def _told(name: str) -> str:
    """Returns a task's name for a message; any other content of a file is not repeated."""
    return repr(name) if _NAME.fullmatch(name) else "what is no task"


def _decoded(raw: bytes, number: int, path: str, option: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise invalid(option, path, f"line {number} is not UTF-8: save the list as UTF-8") from error


def _named(line: Record) -> Task:
    return _task(line.text("task"), line)


def _task(name: str, record: Record) -> Task:
    instances = [Instance(instance.text("input"), instance.texts("output")) for instance in record.records("Instances")]
    return Task(name, record.texts("Definition")[0], instances)
