from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_cli.tune.search_space import (
    Choice,
    Range,
    corners,
    dimensions,
    drawn,
    field_of,
    grid,
    parsed,
    short_names,
    size,
)
from ferret_core.protocol.errors import FerretError
from tests.refusals import refused

numbers = st.tuples(st.floats(1e-6, 1.0), st.floats(1.1, 1e3)).map(lambda ends: [ends[0], ends[0] * ends[1]])
wholes = st.tuples(st.integers(1, 5), st.integers(1, 4)).map(lambda ends: [ends[0], ends[0] + ends[1]])
ranges = st.one_of(
    st.tuples(st.sampled_from(["log", "uniform"]), numbers).map(lambda drawn: {drawn[0]: drawn[1], "points": 3}),
    st.tuples(st.sampled_from(["int", "log_int"]), wholes).map(lambda drawn: {drawn[0]: drawn[1]}),
)
values = st.lists(st.integers(0, 9), min_size=2, max_size=3, unique=True).map(lambda found: {"choice": found})
names = st.sampled_from(["a", "b", "c"])
tables = st.recursive(
    ranges | values,
    lambda below: (
        st.dictionaries(names, below, min_size=1, max_size=2)
        | st.dictionaries(st.sampled_from(["x", "y"]), st.dictionaries(names, below, max_size=1), min_size=2).map(
            lambda options: {"choice": options}
        )
    ),
    max_leaves=4,
)
spaces = st.dictionaries(names, tables, min_size=1, max_size=2)


def at_random(generator: random.Random) -> Any:
    def draw(name: str, dimension: Any) -> Any:
        if isinstance(dimension, Choice):
            return generator.choice(list(dimension.options))
        return dimension.at(generator.random())

    return draw


@given(spaces, st.integers(0, 9))
def test_what_is_drawn_lies_within_the_ranges_and_its_names_are_known(table: Any, seed: int) -> None:
    space = parsed(table, "tune")
    known, found = dimensions(space), {}
    draw = at_random(random.Random(seed))

    def noted(name: str, dimension: Any) -> Any:
        found[name] = draw(name, dimension)
        return found[name]

    part = drawn(space, noted)
    assert part.keys() == table.keys()
    assert found.keys() <= known.keys()
    for name, value in found.items():
        dimension = known[name]
        assert value in dimension.options if isinstance(dimension, Choice) else dimension.low <= value <= dimension.high
    assert drawn(space, lambda name, _: found[name]) == part


@given(spaces)
def test_a_grid_has_every_combination_once(table: Any) -> None:
    space = parsed(table, "tune")
    points = list(grid(space))
    assert len(points) == size(space)
    assert len({tuple(point.items()) for point in points}) == len(points)
    for point in points:
        drawn(space, lambda name, _: point[name])  # noqa: B023


@given(spaces)
def test_the_corners_reach_both_ends_and_every_option(table: Any) -> None:
    space = parsed(table, "tune")
    seen = set(leaves(list(corners(space))))
    for dimension in dimensions(space).values():
        if isinstance(dimension, Range):
            assert {dimension.low, dimension.high} <= seen


def leaves(value: Any) -> list[Any]:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if below is None else [leaf for each in below for leaf in leaves(each)]


def test_dimensions_below_a_choice_are_named_after_the_option() -> None:
    local = {
        "choice": {
            "sgd": {"optimizer": "sgd", "learning_rate": {"log": [0.01, 1]}},
            "adam": {"optimizer": "adam", "learning_rate": {"log": [1e-5, 1e-2]}, "clip": {"choice": [1.5, 5.0]}},
        }
    }
    space = parsed({"algorithm": {"local": local}, "server": {"momentum": {"uniform": [0, 0.9]}}}, "tune")
    names = list(dimensions(space))
    assert names == [
        "algorithm.local",
        "algorithm.local[sgd].learning_rate",
        "algorithm.local[adam].learning_rate",
        "algorithm.local[adam].clip",
        "server.momentum",
    ]
    assert short_names(names) == ["local", "local[sgd].learning_rate", "local[adam].learning_rate", "clip", "momentum"]
    assert [field_of(name) for name in names[1:3]] == ["algorithm.local.learning_rate"] * 2
    values = {names[0]: "adam", names[2]: 1e-3, names[3]: "1.5", names[4]: 0.5}
    assert drawn(space, lambda name, _: values[name]) == {
        "algorithm": {"local": {"optimizer": "adam", "learning_rate": 1e-3, "clip": 1.5}},
        "server": {"momentum": 0.5},
    }


def test_a_choice_of_tables_is_labelled_by_its_plain_values() -> None:
    tables = [{"optimizer": "sgd", "clip_norm": 0.5}, {"optimizer": "adam", "rate": {"log": [1e-3, 1]}, "b": [1, 2]}]
    space = parsed({"local": {"choice": tables, "unset": True}}, "tune")
    choice = space["local"]
    assert list(choice.options) == ["optimizer = sgd, clip_norm = 0.5", "optimizer = adam, b = (1, 2)", "unset"]
    assert drawn(space, lambda *_: "unset") == {"local": None}
    nested = "local[optimizer = adam, b = (1, 2)].rate"
    assert nested in dimensions(space)
    assert field_of(nested) == "local.rate"
    assert short_names([nested]) == ["rate"]


@pytest.mark.parametrize(
    ("dimension", "field", "value", "says"),
    [
        ({"log": [1e-2, 1e-5]}, "log", [1e-2, 1e-5], "is inverted: the lower end comes first, [1e-05, 0.01]"),
        ({"uniform": [0.5, 0.5]}, "uniform", [0.5, 0.5], "is an empty range"),
        ({"int": []}, "int", [], "is not a range: give its two ends, whole numbers"),
        ({"int": [1, 2.5]}, "int", [1, 2.5], "whole numbers"),
        ({"int": [False, True]}, "int", [False, True], "whole numbers"),
        ({"log": [0, 1]}, "log", [0, 1], "must be above 0"),
        ({"uniform": [0.0, float("inf")]}, "uniform", [0.0, "inf"], "is not a range"),
        ({"uniform": 3}, "uniform", 3, "is not a range"),
        ({"choice": []}, "choice", [], "leaves nothing to choose"),
        ({"choice": [1]}, "choice", [1], "leaves nothing to choose"),
        ({"choice": [1, 2, 1]}, "choice", [1, 2, 1], "has 1 twice"),
        ({"choice": ["unset", 1], "unset": True}, "choice", ["unset", 1], "has unset twice"),
        ({"choice": 4}, "choice", 4, "is not a choice"),
        ({"choice": [1, 2], "unset": "yes"}, "unset", "yes", "neither true"),
        ({"log": [1, 2], "points": 1}, "points", 1, "is not a number of points"),
        ({"log": [1, 2], "step": 1}, "step", 1, "cannot be combined with log"),
        ({"choice": [1, 2], "points": 2}, "points", 2, "cannot be combined with choice"),
    ],
)
def test_what_is_no_dimension_is_named_with_field_and_value(
    dimension: dict[str, Any], field: str, value: Any, says: str
) -> None:
    with pytest.raises(FerretError) as raised:
        parsed({"server": {"learning_rate": dimension}}, "tune")
    (wrong,) = raised.value.errors
    assert raised.value.code == "spec.invalid"
    assert (wrong.field, wrong.value) == (f"tune.server.learning_rate.{field}", value)
    assert says in wrong.message


@pytest.mark.parametrize("value", [0.1, [1e-5, 1e-2], "log"])
def test_a_plain_value_is_told_how_to_become_a_range(value: Any) -> None:
    with refused("spec.invalid", "tune.server.learning_rate"):
        parsed({"server": {"learning_rate": value}}, "tune")


def test_a_table_that_is_two_things_is_refused() -> None:
    with refused("spec.invalid", "is both log and choice: keep one"):
        parsed({"server": {"learning_rate": {"log": [1, 2], "choice": [1, 2]}}}, "tune")


def test_a_logarithmic_range_is_spread_by_factors_and_ends_where_it_says() -> None:
    assert list(Range(1e-4, 1e-1, log=True, whole=False, points=4).grid()) == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1])
    assert list(Range(1, 64, log=True, whole=True, points=4).grid()) == [1, 4, 16, 64]
    assert list(Range(1, 3, log=False, whole=True, points=None).grid()) == [1, 2, 3]
