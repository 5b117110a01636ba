"""What ``fedit``, ``fedprompt`` and ``fedptuning`` have in common: adapters in a frozen model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer

from ferret_core import catalog
from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.models.digest import frozen_weights_digest, model_digest
from ferret_core.models.load import load
from ferret_core.models.parameters import trainable
from ferret_core.models.save import save_base
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from tests.ferret_core.replicas import SpecFactory, flat, replica_of, sent_by, weights_of
from tests.refusals import refused

NAMES = ["fedit", "fedprompt", "fedptuning"]
FIRST_WEIGHTS = {
    "fedit": "ef03c6c4b2987899f6351ab98e8b7ed6928c68dc9cc93c0a612dd1134a831d06",
    "fedprompt": "60d20bd648b5464cf1d5fc7fafd26931eb2e8ab05902c4f351ce9166c0e7bb78",
    "fedptuning": "cc49c8f3fd9791fcde804b568d61d17817e385b6a9a6ffbb595a31a3eee35b0b",
}

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.parametrize("name", NAMES),
    # Stock PEFT asks transformers under an old name.
    pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning"),
]


def after_a_round(spec: ExperimentSpec) -> Replica:
    replica = replica_of(spec)
    aggregate_round(replica, "simulation", sent_by(replica))
    return replica


def stock(source: str, folder: Path, dtype: torch.dtype = torch.float32) -> nn.Module:
    return PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(source, dtype=dtype), folder).eval()


def logits(model: nn.Module) -> Tensor:
    ids = torch.tensor([[0, 17, 40, 5, 99], [0, 8, 21, 2, 2]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.inference_mode():
        return model(input_ids=ids, attention_mask=mask).logits


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_stock_peft_loads_a_checkpoint_with_the_same_logits(
    name: str, dtype: str, toy_spec: SpecFactory, tiny_model_dir: Path, tmp_path: Path
) -> None:
    replica = after_a_round(toy_spec(name, model={"source": str(tiny_model_dir), "dtype": dtype}))
    written = checkpoint.write(replica, "exp", tmp_path)
    assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= set(written.files)
    assert not {"model.safetensors", "README.md"} & set(written.files)
    loaded = stock(str(tiny_model_dir), tmp_path, getattr(torch, dtype))
    assert torch.equal(logits(loaded), logits(replica.model))
    assert AutoTokenizer.from_pretrained(tmp_path)("Repeat.").input_ids == replica.tokenizer("Repeat.").input_ids


def test_a_checkpoint_names_the_base_model_as_the_specification_does(
    name: str, toy_spec: SpecFactory, tiny_model_dir: Path, tmp_path: Path
) -> None:
    spec = catalog.resolve(toy_spec(name)).spec
    copy = tmp_path / "copy"
    save_base(load(spec.model), copy)
    out = tmp_path / "out"
    out.mkdir()
    checkpoint.write(Replica.load(spec, copy), "exp", out)
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tiny_model_dir)


def test_the_base_model_is_saved_and_read_back_before_adapters_are_in_it(
    name: str, toy_spec: SpecFactory, tmp_path: Path
) -> None:
    spec = catalog.resolve(toy_spec(name)).spec
    loaded = load(spec.model)
    before = model_digest(loaded.model)
    save_base(loaded, tmp_path)
    replica = Replica(spec, loaded)
    assert model_digest(AutoModelForCausalLM.from_pretrained(tmp_path)) == before
    assert Replica.load(spec, tmp_path).digest == replica.digest != before


def test_a_contribution_holds_the_adapters_alone_and_the_rest_never_moves(name: str, toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec(name))
    below = frozen_weights_digest(replica.model)
    tuned = sum(parameter.numel() for parameter in trainable(replica.model).values())
    for sent in sent_by(replica):
        assert {key: array.shape for key, array in sent.contribution.arrays.items()} == {"update": (tuned,)}
    assert frozen_weights_digest(after_a_round(toy_spec(name)).model) == below


def test_adapters_end_at_the_mean_weighted_by_examples(name: str, toy_spec: SpecFactory) -> None:
    spec = toy_spec(name, participants={"simulated": 7}, server={"weights": "examples", "learning_rate": 0.5})
    replica = replica_of(spec)
    before = flat(replica.model)
    sent = sent_by(replica)
    examples = np.array([item.meta.examples for item in sent], dtype=np.float64)
    assert set(examples) == {8, 9}
    mean = sum(
        count * item.contribution.arrays["update"].astype(np.float64)
        for count, item in zip(examples, sent, strict=True)
    )
    aggregate_round(replica, "simulation", sent)
    after = flat(replica.model)
    expected = before.double() - 0.5 * torch.from_numpy(mean / examples.sum())
    torch.testing.assert_close(after.double(), expected, rtol=0, atol=1e-6)
    assert not torch.equal(after, before)


def test_first_weights_follow_from_the_seed_alone(name: str, toy_spec: SpecFactory) -> None:
    torch.manual_seed(1)
    item = replica_of(toy_spec(name))
    torch.manual_seed(2)
    drawn = torch.get_rng_state()
    other = replica_of(toy_spec(name))
    assert torch.equal(torch.get_rng_state(), drawn), "and take nothing from torch's own generator"
    assert other.digest == item.digest
    assert replica_of(toy_spec(name, seed=6)).digest != item.digest


def test_first_weights_are_the_same_bits_everywhere(name: str, toy_spec: SpecFactory) -> None:
    """A changed digest means that no recorded ledger of this algorithm can be replayed any more."""
    first = weights_of(replica_of(toy_spec(name)).model)
    assert digest_bytes(b"".join(tensor.numpy().tobytes() for tensor in first.values())) == FIRST_WEIGHTS[name]


def test_a_half_precision_model_is_not_copied_for_training(
    name: str, toy_spec: SpecFactory, tiny_model_dir: Path
) -> None:
    replica = replica_of(toy_spec(name, model={"source": str(tiny_model_dir), "dtype": "bfloat16"}))
    adapters, frozen = trainable(replica.model), []
    places = {key: weight.data_ptr() for key, weight in replica.model.named_parameters() if key not in adapters}

    def look(step: int) -> None:
        at = {key: weight.data_ptr() for key, weight in replica.model.named_parameters() if key not in adapters}
        frozen.append(at == places)

    sent_by(replica, look)
    assert frozen
    assert all(frozen)
    assert {parameter.dtype for parameter in adapters.values()} == {torch.float32}


def test_layers_with_adapters_can_be_checkpointed(name: str, toy_spec: SpecFactory) -> None:
    """Nothing below a soft prompt needs a gradient, and dropout must draw the same numbers twice."""
    specs = [toy_spec(name, options={"local": {"steps": 2, "activation_checkpointing": on}}) for on in (False, True)]
    plain, checkpointed = (sent_by(replica_of(spec))[0].contribution.arrays["update"] for spec in specs)
    np.testing.assert_allclose(checkpointed, plain, rtol=1e-4, atol=1e-7)
    assert plain.any()


def test_without_peft_the_error_names_it(name: str, toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with refused("dependency.missing", "pip install peft"):
        replica_of(toy_spec(name))
