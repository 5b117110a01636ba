"""The demo's base model: small, loadable, good at what it knows, and ignorant of what it is to learn."""

from __future__ import annotations

import logging
from random import Random
from statistics import fmean

import pytest
from transformers.utils.logging import disable_propagation, enable_propagation

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.evaluation.generate import generate
from ferret_core.models.load import LoadedModel, context_of, load
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import sizes
from ferret_core.protocol.spec import ModelSpec
from ferret_core.sample import model_path
from ferret_core.sample.tasks import KNOWN, TASKS, row


@pytest.fixture(scope="module")
def base() -> LoadedModel:
    return load(ModelSpec(source=str(model_path())))


def exact(base: LoadedModel, category: str, count: int = 32) -> float:
    """Share of greedy answers to fresh tasks that are exactly right."""
    rng = Random(f"fresh {category}")
    asked = [Example(*row(rng, category)) for _ in range(count)]
    prompts = encode_prompts(asked, base.tokenizer, context_of(base.model) - 20)
    answers = generate(base.model, base.tokenizer, prompts, 20, count)
    return fmean(answer == example.output for answer, example in zip(answers, asked, strict=True))


def test_it_loads_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    enable_propagation()
    try:
        load(ModelSpec(source=str(model_path())))
    finally:
        disable_propagation()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_it_is_small_and_its_context_has_room(base: LoadedModel) -> None:
    assert sum(path.stat().st_size for path in model_path().iterdir()) <= 4_000_000
    assert 1_000_000 <= sum(sizes(shapes(base.model)).values()) <= 3_000_000
    assert context_of(base.model) >= 256


@pytest.mark.parametrize("category", KNOWN)
def test_it_knows_the_known_tasks(base: LoadedModel, category: str) -> None:
    assert exact(base, category) >= 0.9


@pytest.mark.parametrize("category", sorted(set(TASKS) - set(KNOWN)))
def test_it_does_not_know_the_others(base: LoadedModel, category: str) -> None:
    assert exact(base, category) <= 0.1


@pytest.mark.parametrize("text", ["Anna sees a fox.", "Überraschung! 日本語", "{'a': 1.5}\n\tx  y"])
def test_the_tokenizer_loses_nothing(base: LoadedModel, text: str) -> None:
    assert base.tokenizer.decode(base.tokenizer(text).input_ids).removeprefix(" ") == text
