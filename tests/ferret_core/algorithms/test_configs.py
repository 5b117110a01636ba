"""What algorithms promise of their bytes, and how they take a budget of bytes."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core import catalog, discovery
from ferret_core.simulate import simulate
from tests.algorithms import METADATA
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

D = 30_880
"""Parameters of the toy's model, in 20 tensors."""
MATRICES = [(32, 32), (16, 32), (16, 32), (32, 32), (64, 32), (64, 32), (32, 64)] * 2 + [(384, 32)]
"""Seven in each of two layers, and the embedding; beside them are five norms of width 32."""
ROWS, COLUMNS = (2 * sum(sizes) + 5 * 32 for sizes in zip(*MATRICES, strict=True))
PROMPT = {"virtual_tokens": 7}
ENCODER = 7 * 32 + 2 * 32 * 24 + 24**2 + 2 * 24 + 32


@pytest.mark.parametrize(
    ("name", "options", "up", "down"),
    [
        ("drive", {}, 8 * (4096 / 8 + 4), 4 * D),
        ("qsgd", {"levels": 2, "bucket": 100}, 8 * -(-D // 27) + 4 * 309, 4 * D),
        ("signsgd", {}, D / 8 + 4 * 20, D / 8 + 4 * 20),
        ("signsgd", {"error_feedback": True}, D / 8 + 4 * 20, 4 * D),
        ("scaffold", {}, 8 * D, 8 * D),
        ("fetchsgd", {"bytes_per_round": 9_000, "rows": 3}, 9_000, 9_000),
        ("powersgd", {"rank": 2}, 4 * COLUMNS, 4 * ROWS),
        ("fedit", {}, 4 * 2 * 8 * 112, 4 * 2 * 8 * 112),
        ("fedprompt", PROMPT, 4 * 7 * 32, 4 * 7 * 32),
        ("fedptuning", PROMPT | {"hidden_size": 24}, 4 * ENCODER, 4 * ENCODER),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_little_travels_beside_the_numbers(
    toy_spec: SpecFactory, name: str, options: dict[str, Any], up: float, down: float
) -> None:
    done = simulate(
        toy_spec(name, options=options, rounds=2, evaluation={"examples": 1, "generate_examples": 0})
    ).rounds[2]
    assert 0 <= done.bytes_up / 3 - up <= METADATA
    assert 0 <= done.bytes_down / 3 - down <= METADATA


BUDGETS = [("demo", {}, 900), ("sparseloco", {}, 2_000), ("sparseloco", {}, 9_000)]
BUDGETS += [
    ("topk", {"coordinates": kind}, budget)
    for kind in ("float32", "float16", "int8", "sign")
    for budget in (2_000, 9_000)
]


@pytest.mark.parametrize(("name", "options", "budget"), BUDGETS, ids=str)
@pytest.mark.heavy
def test_a_budget_is_filled_and_kept(toy_spec: SpecFactory, name: str, options: dict[str, Any], budget: int) -> None:
    each = simulate(toy_spec(name, options=options | {"bytes_per_round": budget}, rounds=1)).rounds[1].bytes_up / 3
    assert budget - 8 < each <= budget + METADATA


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fetchsgd", {"bytes_per_round": 19}),
        ("sparseloco", {"bytes_per_round": 50}),
        ("topk", {"bytes_per_round": 5}),
        ("fed_sb", {"bytes_per_round": 50}),
        ("ferret", {"bytes_per_round": 60}),
        ("ferret", {"K": 90, "whole_up_to": 64}),
    ],
    ids=str,
)
def test_a_budget_too_small_for_the_model_is_refused_before_anything_runs(
    toy_spec: SpecFactory, name: str, options: dict[str, Any]
) -> None:
    with refused("spec.invalid", field=f"algorithm.{next(iter(options))}"):
        replica_of(toy_spec(name, options=options))


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("ferret", "K", 4),
        ("topk", "K", 5),
        ("topk", "fraction", 0.5),
        ("sparseloco", "density", 0.5),
        ("demo", "density", 0.5),
        ("fetchsgd", "columns", 5),
        ("fed_sb", "rank", 3),
    ],
)
def test_a_budget_takes_the_place_of_what_it_excludes(name: str, option: str, value: float) -> None:
    Config = discovery.load(catalog.CONFIGS["algorithms"], name, "algorithm").Config
    by_bytes = Config(bytes_per_round=5000)
    assert getattr(by_bytes, option) is None
    assert Config.model_validate(by_bytes.model_dump()) == by_bytes
    with pytest.raises(ValueError, match="exclude each other"):
        Config(bytes_per_round=5000, **{option: value})
