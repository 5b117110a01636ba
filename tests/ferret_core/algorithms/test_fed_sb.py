from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, LlamaForCausalLM

from ferret_core import catalog
from ferret_core.algorithms import fed_sb
from ferret_core.client.local_round import contribute
from ferret_core.datasets._validation_split import rank
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.experiment.federated_data import FederatedSplit, deal
from ferret_core.models import architecture
from ferret_core.models.definition import BASES
from ferret_core.models.digest import model_digest
from ferret_core.models.load import load
from ferret_core.models.parameters import shapes, trainable
from ferret_core.models.save import save_base
from ferret_core.protocol.wire import decode, encode
from ferret_core.replica.bases import with_bases
from ferret_core.replica.replica import Replica
from ferret_core.training.loss import response_loss
from tests.ferret_core.replicas import SpecFactory, clients_of, move, replica_of, weights_of
from tests.refusals import refused


@pytest.fixture
def public(tiny_model_dir: Path) -> ClientData:
    words = ["red", "green", "blue", "fish"]
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_dir)
    return shard_of([Example("Repeat.", word, word) for word in words], tokenizer, 64)


def test_the_bases_are_the_leading_singular_directions_of_a_first_step_on_public_text(
    tiny_model: LlamaForCausalLM, public: ClientData
) -> None:
    config = fed_sb.Config(rank=3, targets=["q_proj", "down_proj"])
    before = model_digest(tiny_model)
    bases = fed_sb.Algorithm(config).bases(tiny_model, public, 7)
    assert model_digest(tiny_model) == before
    (whole,) = public.ordered(len(public))
    response_loss(tiny_model, whole).nll.backward()
    for matrix in config.matrices(shapes(tiny_model)):
        gradient = tiny_model.get_submodule(matrix.layer).weight.grad
        assert isinstance(gradient, torch.Tensor)
        U, V = map(torch.from_numpy, matrix.basis(bases["U"], bases["V"]))
        torch.testing.assert_close(U.T @ U, torch.eye(3), rtol=0, atol=1e-5)
        torch.testing.assert_close(V.T @ V, torch.eye(3), rtol=0, atol=1e-5)
        step = gradient.sign()
        leading = torch.linalg.svdvals(step)[:3]
        assert float(torch.linalg.vector_norm(U.T @ step @ V)) == pytest.approx(float(leading.norm()), rel=0.02)


def test_the_bases_are_those_of_ten_iterations() -> None:
    """The singular values fall slowly: nine iterations leave 3.2 % of the leading part, ten 2.9 %."""
    step = torch.randn(400, 300, generator=torch.Generator().manual_seed(3))
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        U, V = map(torch.from_numpy, fed_sb._leading(step, 3))
    whole = torch.linalg.svdvals(step)[:3].norm()
    assert torch.linalg.vector_norm(U.T @ step @ V) > 0.9695 * whole


def test_the_bases_are_a_file_of_the_base_model_under_its_digest(toy_spec: SpecFactory, tmp_path: Path) -> None:
    spec = catalog.resolve(toy_spec("fed_sb")).spec
    loaded = with_bases(spec, load(spec.model))
    save_base(loaded, tmp_path)
    first = Replica.load(spec, tmp_path)
    assert first.digest == Replica(spec, loaded).digest
    assert np.array_equal(first.state["U"], decode(loaded.files[BASES])[0]["U"])
    file = tmp_path / BASES
    arrays, _ = decode(loaded.files[BASES])
    file.write_bytes(encode({**arrays, "U": arrays["U"][::-1]}, {}))
    assert Replica.load(spec, tmp_path).digest != first.digest
    for damaged in (
        encode({"U": arrays["U"]}, {}),
        encode({**arrays, "V": arrays["V"][1:]}, {}),
        b"",
        file.read_bytes()[:-1],
    ):
        file.write_bytes(damaged)
        with refused("model.invalid", BASES):
            Replica.load(spec, tmp_path)
    file.unlink()
    with refused("model.invalid", BASES):
        Replica.load(spec, tmp_path)


def test_nobody_trains_or_is_judged_on_the_public_text(toy_spec: SpecFactory) -> None:
    def dealt(algorithm: str, **changes: Any) -> FederatedSplit:
        return deal(catalog.resolve(toy_spec(algorithm, **changes)).spec)

    validation = {"split": "validation"}
    with_it, without = (dealt(name, evaluation=validation).held_out for name in ("fedavg", "fed_sb"))
    public = set(map(rank, with_it)) - set(map(rank, without))
    assert len(public) == 2
    assert public <= set(map(rank, dealt("fedavg").train))
    assert not public & set(map(rank, dealt("fed_sb").train))


def test_data_without_enough_public_text_is_refused(toy_spec: SpecFactory) -> None:
    with refused("dataset.invalid", "3 examples", field="algorithm.public_examples"):
        replica_of(toy_spec("fed_sb", options={"public_examples": 3}))


def test_a_core_beside_a_layer_is_the_product_added_to_its_matrix() -> None:
    """For a linear layer, outputs × inputs, and for GPT-2's, inputs × outputs."""
    for transposed, layer in [(True, torch.nn.Linear(5, 7)), (False, torch.nn.Linear(7, 5))]:
        U, V = torch.randn(7, 2), torch.randn(5, 2)
        core = torch.nn.Parameter(torch.randn(2, 2))
        values, product = torch.randn(3, layer.in_features), U @ core @ V.T
        expected = layer(values) + values @ (product.T if transposed else product)
        added = fed_sb._adding(core, U, V, transposed)(layer, (values,), layer(values))
        torch.testing.assert_close(added, expected)


@pytest.mark.parametrize(("kind", "each"), [("float16", 2 * 9 + 2), ("sign", 9 / 8 + 2)])
def test_a_matrix_takes_the_square_of_the_rank_and_a_scale(toy_spec: SpecFactory, kind: str, each: float) -> None:
    options = {"rank": 3, "coordinates": kind}
    replica = replica_of(toy_spec("fed_sb", options=options))
    size = replica.experiment.config.size(replica.shapes)
    assert 14 * each <= size.arrays <= 14 * each + 6, "seven matrices in each of two layers, and an exponent"


def test_a_round_moves_the_tuned_matrices_within_their_bases_and_nothing_else(toy_spec: SpecFactory) -> None:
    replica = replica_of(toy_spec("fed_sb", options={"rank": 2, "targets": ["q_proj", "down_proj"]}))
    before = weights_of(replica.model)
    move(replica, contribute(replica, clients_of(replica)[0]).sealed.contribution)
    for name, weight in trainable(replica.model).items():
        moved = (before[name] - weight.detach()).double()
        if name.endswith(("q_proj.weight", "down_proj.weight")):
            assert int(torch.linalg.matrix_rank(moved, rtol=1e-3)) == 2
        else:
            assert not moved.any()


def test_a_target_that_there_is_not_is_refused_with_those_there_are(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "q_proj", field="algorithm.targets"):
        replica_of(toy_spec("fed_sb", options={"targets": ["query"]}))


@pytest.mark.parametrize("target", ["lm_head", "embed_tokens"])
def test_embeddings_and_the_head_are_no_targets(target: str) -> None:
    """The loss multiplies by the head in parts, without its layer, and an embedding's inputs are no numbers."""
    with refused("spec.invalid", f"{target} is not a layer", "up_proj, v_proj") as caught:
        fed_sb.Config(targets=[target]).matrices(architecture.of_llama("llama-1b").shapes)
    assert f", {target}" not in str(caught.value)


def test_gpt2s_layers_can_be_tuned() -> None:
    model: Any = GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16, n_positions=8, bos_token_id=0, eos_token_id=1)
    ).eval()
    config = fed_sb.Config(rank=2, targets=["c_attn"])
    algorithm = fed_sb.Algorithm(config)
    state = {**algorithm.init_state(model, 0), **algorithm.bases(model, ClientData([Encoded([1, 2], [3])], 0, 0), 0)}
    (matrix,) = config.matrices(shapes(model))
    ids = torch.tensor([[1, 2, 3]])
    core = np.array([0.5, -1, 2, 0.25], np.float32)
    with fed_sb._cores(model, [matrix], state) as cores, torch.no_grad():
        cores[0].copy_(torch.from_numpy(-core).view(2, 2))
        expected = model(ids).logits
    algorithm.apply_update(model, state, {"update": core, "rounding": np.zeros(1, np.uint64)}, 1.0)
    torch.testing.assert_close(model(ids).logits, expected, rtol=1e-4, atol=1e-5)


def test_a_gradient_that_is_not_finite_is_refused() -> None:
    with refused("training.non_finite"):
        fed_sb._leading(torch.full((4, 4), torch.nan), 2)
