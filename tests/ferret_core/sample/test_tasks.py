"""The demo's tasks: the same every time, skewed, in the format of our dataset, and every answer right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ferret_core.datasets.base import Example
from ferret_core.datasets.jsonl import Config, Dataset
from ferret_core.sample.tasks import TASKS, row, write

NUMBERS = [
    *["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    *["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"],
]
SCENE = re.compile(r"(?P<name>\w+) (?P<verb>\w+) a (?P<colour>\w+) (?P<animal>\w+) in the (?P<place>\w+)\.")


def told(text: str) -> dict[str, str]:
    match = SCENE.fullmatch(text)
    assert match, text
    return match.groupdict()


def is_sum(given: str, answer: str) -> bool:
    a, _, _, b, _ = given.split()
    return answer == f"That makes {NUMBERS[NUMBERS.index(a) + NUMBERS.index(b)]} animals."


def is_count(given: str, answer: str) -> bool:
    return NUMBERS.index(answer.split()[2]) == given.count(" ") + 1


def is_place_asked_for(given: str, answer: str) -> bool:
    asked = given.split()[-1].removesuffix("?")
    places = dict(re.findall(r"(\w+) is in the (\w+)\.", given))
    return answer == f"look for {asked} in the {places[asked]}"


def is_record(given: str, answer: str) -> bool:
    return all(f"{field} {told(given)[field]}" in answer.split(", ") for field in ("place", "animal", "colour", "name"))


# Of the others the answers are words that a table in the module holds.
RULES: dict[str, Callable[[str, str], bool]] = {
    "repeat": lambda given, answer: answer == given,
    "colour": lambda given, answer: answer == told(given)["colour"],
    "reverse": lambda given, answer: answer.split()[:0:-1] == given.split() and answer.split()[0] == "backwards",
    "count": is_count,
    "add": is_sum,
    "question": is_place_asked_for,
    "record": is_record,
    "zib": lambda given, answer: answer == f"zib {given} zib",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo")
    write(path)
    return path


def dataset(folder: Path, train: str = "train.jsonl") -> Dataset:
    return Dataset(Config(train=str(folder / train), test=str(folder / "test.jsonl")))


@pytest.mark.parametrize("category", RULES)
def test_every_answer_follows_the_rule(category: str) -> None:
    rng = Random(category)
    for _ in range(200):
        drawn = row(rng, category)
        assert RULES[category](drawn.input, drawn.output), drawn


def test_the_same_seed_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write(tmp_path)
    names = ["edge.jsonl", "test.jsonl", "train.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all((tmp_path / name).read_bytes() == (folder / name).read_bytes() for name in names)


def test_another_seed_writes_other_examples(folder: Path, tmp_path: Path) -> None:
    write(tmp_path, seed=1)
    assert (tmp_path / "train.jsonl").read_bytes() != (folder / "train.jsonl").read_bytes()


def labels(examples: list[Example]) -> Counter[str]:
    return Counter(example.label for example in examples)


def test_the_categories_are_at_least_eight_and_skewed(folder: Path) -> None:
    counts = labels(dataset(folder).train())
    assert len(counts) >= 8
    assert max(counts.values()) > 2 * min(counts.values())


def test_all_categories_are_held_out_too(folder: Path) -> None:
    assert set(labels(dataset(folder).test())) == set(TASKS)


def test_only_the_edge_participant_has_zib(folder: Path) -> None:
    edge, shared = labels(dataset(folder, "edge.jsonl").train()), labels(dataset(folder).train())
    assert edge.most_common(1)[0][0] == "zib"
    assert "zib" not in shared
    assert len(edge) < len(shared) / 2


@pytest.mark.parametrize("name", ["train.jsonl", "edge.jsonl"])
def test_no_held_out_example_is_trained_on(folder: Path, name: str) -> None:
    data = dataset(folder, name)
    assert not set(data.train()) & set(data.test())
