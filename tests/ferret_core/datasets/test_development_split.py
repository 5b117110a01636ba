"""Development examples are of different texts, few, always the same, and apart from all others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferret_core.datasets._validation_split import choose_development, require_apart, without_development
from ferret_core.datasets.base import Example
from tests.refusals import refused


def numbered(count: int) -> list[Example]:
    return [Example(f"question {number}", "", f"answer {number}") for number in range(count)]


@given(st.integers(5, 60), st.integers(4, 59), st.integers(1, 3), st.randoms())
def test_they_are_of_different_texts_and_no_order_of_the_file_changes_them(
    distinct: int, count: int, copies: int, random: object
) -> None:
    examples = numbered(distinct) * copies
    if count >= distinct:
        return
    found = choose_development(examples, count)
    shuffled = examples[:]
    random.shuffle(shuffled)
    assert choose_development(shuffled, count) == found
    assert len(set(found)) == count
    left = without_development(examples, found)
    assert len(left) == copies * (distinct - count)
    assert not set(left) & set(found)


def test_too_few_are_refused_with_how_many_there_are() -> None:
    with refused("dataset.invalid", "has 6 examples of different texts") as caught:
        choose_development(numbered(6) * 5, 6)
    error = caught.value.errors[0]
    assert (caught.value.code, error.field, error.value) == ("dataset.invalid", "server.development_examples", 6)


def test_one_that_is_a_test_example_too_is_refused() -> None:
    require_apart(numbered(4), numbered(9)[4:])
    with refused("dataset.invalid", "1 of these examples are test examples too") as caught:
        require_apart(numbered(4), numbered(9)[3:])
    error = caught.value.errors[0]
    assert (caught.value.code, error.field, error.value) == ("dataset.invalid", "server.development_examples", 4)
