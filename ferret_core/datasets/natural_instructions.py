"""Super-NaturalInstructions: one client per training task, evaluated on tasks that no client trained on.

Wang et al., "Super-NaturalInstructions: Generalization via Declarative Instructions on 1600+ NLP Tasks", EMNLP 2022,
https://arxiv.org/abs/2204.07705; Apache 2.0 for the collection, each task under a separate licence. The English track
(``splits/default``) has 756 training and 119 test tasks; tasks with other languages are in neither list.

The instruction is the task's ``Definition``, the label its name. The defaults are the practice of FedKSeed (Qin et
al., ICML 2024, https://arxiv.org/abs/2312.06353), which the Ferret paper follows:

1. instances with an input of ``max_characters`` (1,024) or more are dropped;
2. training tasks left with fewer than ``min_instances`` (20) are not clients, which leaves 738 of the 756 for FedKSeed;
3. ``train_share`` (20 %) of each training task's instances are drawn, without replacement;
4. ``test_share`` (2 %) of each test task's, but at least ``test_at_least`` (20) if the task has them;
5. the first answer is the reference. ``references = "all"`` accepts the others too, as the collection's own
   metric does.

A validation split takes whole training tasks, so that its tasks too are not in any client's training data. It takes the
names with the smallest BLAKE3 digests, because the order of the list is not random.

``seed`` determines the draws, independently of the experiment's seed: runs that differ only in the latter share their
examples.

Read from ``tasks``: the folder of an official release (https://github.com/allenai/natural-instructions, version 2.8 in
FedKSeed) with ``tasks/*.json`` and ``splits/default/*.txt`` in it, or one JSON Lines file (plain or ``.gz``) that holds
a task per line, with the official fields and also ``task`` and ``split``. ``train_tasks`` and ``test_tasks`` are lists
that replace the official ones. Without ``tasks``, a copy on the Hugging Face hub is read; it was made from the official
files but not by their authors, and is several gigabytes large.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from ferret_core.datasets._hub import OPTION, download_all
from ferret_core.datasets._json import opened, read_lines, read_object, require_allowed
from ferret_core.datasets._record import Record, invalid
from ferret_core.datasets.base import Example
from ferret_core.protocol import limits
from ferret_core.protocol.digest import derive_seed, digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import StrictModel

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
    """Reads the official layout: ``tasks/<name>.json`` for each line of ``names`` or of ``splits/default``'s list."""
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
    """Reads JSON Lines, one task each, its name under ``task``: the tasks in ``names``, or else of this split."""
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
    return repr(name) if _NAME.fullmatch(name) else "a name that is no task"


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


class Config(StrictModel):
    """The files of the tasks, and the selection of instances."""

    tasks: limits.Path | None = Field(
        default=None, description="Folder of an official release, or a JSON Lines file of tasks"
    )
    train_tasks: limits.Path | None = Field(default=None, description="List of training tasks, one name per line")
    test_tasks: limits.Path | None = Field(default=None, description="List of test tasks, one name per line")
    hub: limits.HubName = Field(
        default="Muennighoff/natural-instructions", description="Hub repository, used without tasks"
    )
    revision: limits.Revision | None = Field(default=None, description="Commit or tag of the hub repository")
    max_characters: int | None = Field(
        default=1024,
        ge=1,
        le=limits.MAX_ELEMENTS,
        description="Drop instances with an input of this many characters or more",
    )
    min_instances: int = Field(
        default=20, ge=1, le=limits.MAX_EXAMPLES, description="Drop training tasks with fewer instances"
    )
    train_share: float = Field(default=0.2, gt=0, le=1, description="Share of a training task's instances to draw")
    test_share: float = Field(default=0.02, gt=0, le=1, description="Share of a test task's instances to draw")
    test_at_least: int = Field(
        default=20,
        ge=1,
        le=limits.MAX_EXAMPLES,
        description="Draw at least this many instances of each test task, if it has them",
    )
    train_limit: int | None = Field(
        default=None, ge=1, le=limits.MAX_EXAMPLES, description="Draw at most this many instances of each training task"
    )
    test_limit: int | None = Field(
        default=None, ge=1, le=limits.MAX_EXAMPLES, description="Draw at most this many instances of each test task"
    )
    references: Literal["first", "all"] = Field(
        default="first", description="Correct answers that a score compares with"
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of the draws of instances")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.tasks is not None and self.revision is not None:
            raise ValueError("revision is for the hub: leave it out with local tasks")
        if self.tasks is None and (self.train_tasks or self.test_tasks):
            raise ValueError("lists of tasks need local tasks: set tasks, or leave the lists out")
        return self


class Dataset:
    """Examples in the order of the tasks; ``dataset.invalid`` names file, place and field, or the list's line."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def train(self) -> list[Example]:
        """Returns the instances drawn from the training tasks that are large enough."""
        config = self.config
        examples: list[Example] = []
        for task in self._tasks("train"):
            instances = self._short(task)
            if len(instances) >= config.min_instances:
                count = max(1, _part(config.train_share, len(instances)))
                examples += self._drawn(task, instances, count, config.train_limit)
        return self._some(examples, "train")

    def test(self) -> list[Example]:
        """Returns the instances drawn from the test tasks."""
        config = self.config
        examples: list[Example] = []
        for task in self._tasks("test"):
            instances = self._short(task)
            count = max(config.test_at_least, _part(config.test_share, len(instances)))
            examples += self._drawn(task, instances, count, config.test_limit)
        return self._some(examples, "test")

    def first_held_out(self, labels: Set[str]) -> list[str]:
        """Returns tasks by the digests of their names."""
        return sorted(labels, key=digest_json)

    def _tasks(self, split: Split) -> Iterator[Task]:
        config = self.config
        if config.tasks is None:
            return from_hub(config.hub, config.revision, split)
        require_allowed(config.tasks, "dataset.tasks")
        names = config.train_tasks if split == "train" else config.test_tasks
        if Path(config.tasks).is_dir():
            return from_release(Path(config.tasks), split, names)
        return from_file(config.tasks, split, names)

    def _short(self, task: Task) -> list[Instance]:
        longest = self.config.max_characters or math.inf
        return [instance for instance in task.instances if len(instance.input) < longest]

    def _drawn(self, task: Task, instances: list[Instance], count: int, limit: int | None) -> Iterator[Example]:
        count = min(count, limit or count, len(instances))
        rng = np.random.Generator(np.random.PCG64(derive_seed(self.config.seed, "natural_instructions", task.name)))
        for index in sorted(rng.permutation(len(instances))[:count].tolist()):
            text, (output, *others) = instances[index]
            accepted = tuple(others) if self.config.references == "all" else ()
            yield Example(task.definition, text, output, task.name, accepted)

    def _some(self, examples: list[Example], split: Split) -> list[Example]:
        if not examples:
            option = "dataset.tasks" if self.config.tasks else "dataset.hub"
            message = f"no {split} task has instances that are short enough: raise max_characters, lower min_instances"
            raise FerretError.of_field("dataset.invalid", option, self.config.tasks or self.config.hub, message)
        return examples


def _part(share: float, count: int) -> int:
    """Returns the share of its decimal value, rounded down: 0.29 of 100 is 29, not the 28 of binary fractions."""
    return math.floor(Fraction(str(share)) * count)
