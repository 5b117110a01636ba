from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ferret_core.datasets import dolly, natural_instructions
from ferret_core.datasets._validation_split import without_validation
from ferret_core.datasets.base import Example
from tests.refusals import refused


class Given:
    """A dataset of these training examples, whose test examples must not be read."""

    def __init__(self, examples: list[Example]) -> None:
        self.examples = examples

    def train(self) -> list[Example]:
        return self.examples

    def test(self) -> list[Example]:
        raise AssertionError("the test examples were read")


def numbered(count: int) -> list[Example]:
    return [Example(f"Say {i}.", "", str(i)) for i in range(count)]


@given(count=st.integers(2, 60), share=st.floats(0.01, 0.99), order=st.randoms())
def test_the_share_is_set_aside_whatever_the_order_of_the_lines(count: int, share: float, order: Random) -> None:
    examples = numbered(count)
    assume(share * count <= count - 1)
    shuffled = list(examples)
    order.shuffle(shuffled)
    train, validation = without_validation(Given(examples), share)
    assert share * count <= len(validation) < share * count + 1 + 1e-9
    assert train == [example for example in examples if example not in validation]
    again = without_validation(Given(shuffled), share)
    assert (set(again[0]), set(again[1])) == (set(train), set(validation))


def test_examples_of_the_same_text_stay_together() -> None:
    train, validation = without_validation(Given(numbered(10) * 3), 0.3)
    assert (len(train), len(validation)) == (21, 9)
    assert not set(train) & set(validation)


@pytest.mark.parametrize(("count", "share"), [(1, 0.1), (4, 0.8)])
def test_a_share_that_leaves_nothing_to_train_on_is_refused(count: int, share: float) -> None:
    with refused("dataset.invalid", f"validation_share = {share}: of {count} examples none is left") as caught:
        without_validation(Given(numbered(count)), share)
    assert (caught.value.errors[0].field, caught.value.errors[0].value) == ("evaluation.validation_share", share)


CATEGORIES = ["brainstorming", "closed_qa", "open_qa", "summarization"]


def a_dolly(folder: Path, held_out: str = "summarization") -> dolly.Dataset:
    rows = [
        {"instruction": f"Say {i}.", "response": str(i), "category": category}
        for i, category in enumerate(CATEGORIES * 5)
    ]
    path = folder / "dolly.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return dolly.Dataset(dolly.Config(path=str(path), held_out=held_out))


@pytest.mark.parametrize(
    ("held_out", "share", "aside"),
    [
        ("summarization", 0.1, {"open_qa"}),
        ("summarization", 0.4, {"open_qa", "closed_qa"}),
        ("open_qa", 0.1, {"summarization"}),
    ],
)
def test_of_dolly_the_last_categories_that_are_left(
    tmp_path: Path, held_out: str, share: float, aside: set[str]
) -> None:
    train, validation = without_validation(a_dolly(tmp_path, held_out), share)
    assert {example.label for example in validation} == aside
    assert {example.label for example in train} == set(CATEGORIES) - aside - {held_out}


def test_of_dolly_one_category_is_left(tmp_path: Path) -> None:
    with refused("dataset.invalid", "validation_share = 0.7", "of 3 labels"):
        without_validation(a_dolly(tmp_path), 0.7)


def test_of_natural_instructions_whole_tasks(tmp_path: Path) -> None:
    def task(number: int, split: str) -> str:
        instances = [{"input": f"{number} {i}", "output": [str(i)]} for i in range(30)]
        return json.dumps({"task": f"task{number}_x", "split": split, "Definition": ["Do."], "Instances": instances})

    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(task(number, "test" if number == 99 else "train") for number in (*range(20), 99)))
    dataset = natural_instructions.Dataset(natural_instructions.Config(tasks=str(path)))
    train, validation = without_validation(dataset, 0.1)
    aside = {example.label for example in validation}
    assert len(aside) == 2
    assert {example.label for example in train} == {f"task{number}_x" for number in range(20)} - aside
