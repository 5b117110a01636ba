from __future__ import annotations

from typing import Any

import pytest

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import EvaluationSpec
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

CONTEXT = 128
LONG = Example("Repeat.", "red green blue " * 40, "red green blue " * 40)


def test_only_the_prompt_is_sent(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fedprompt", options={"virtual_tokens": 7}))
    (prompt,) = trainable(replica.model).values()
    assert prompt.shape == (7, 32)
    assert 0.4 < prompt.abs().max() <= 0.5


@pytest.mark.parametrize("name", ["fedprompt", "fedptuning"])
def test_sequences_leave_room_for_the_prompt(name: str, toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec(name, options={"virtual_tokens": 30}))
    assert replica.context == CONTEXT - 30
    seen: list[int] = []
    model: Any = replica.model
    model.get_base_model().model.layers[0].register_forward_hook(
        lambda module, given, output: seen.append(given[0].shape[1])
    )
    shard = shard_of([LONG], replica.tokenizer, replica.context)
    assert len(shard.examples[0].prompt) + len(shard.examples[0].response) == CONTEXT - 30
    spec = EvaluationSpec(examples=1, generate_examples=1, max_new_tokens=5)
    assert evaluate(replica.model, replica.tokenizer, [LONG], spec)["eval_loss"] > 0
    assert max(seen) == CONTEXT, "and use all that there is"


def test_a_prompt_that_leaves_no_room_is_refused_at_the_start(toy_spec: SpecFactory) -> None:
    assert replica_of(toy_spec("fedprompt", options={"virtual_tokens": CONTEXT - 2})).context == 2
    with refused("spec.invalid", "128", field="algorithm.virtual_tokens"):
        replica_of(toy_spec("fedprompt", options={"virtual_tokens": CONTEXT - 1}))
