from __future__ import annotations

import ctypes
import gc
import json
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.rounds import sampling
from ferret_core.simulate import RoundResult, simulate
from tests.ferret_core import manifest_reader
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

pytestmark = pytest.mark.heavy


def test_it_reports_every_round_as_it_ends_and_writes_the_final_model(toy_spec: SpecFactory, tmp_path: Path) -> None:
    seen: list[RoundResult] = []
    result = simulate(toy_spec(), tmp_path / "out", seen.append)
    assert seen == result.rounds
    assert [item.number for item in seen] == [0, 1, 2, 3]
    assert manifest_reader.checked(tmp_path / "out").digest == result.digest == seen[-1].digest
    assert [record.previous for record in result.ledger] == ["", *(record.hash for record in result.ledger[:-1])]


def test_evaluation_is_taken_only_where_it_is_due(toy_spec: SpecFactory) -> None:
    result = simulate(toy_spec(rounds=5, evaluation={"every": 2, "examples": 4, "generate_examples": 0}))
    assert [round_.number for round_ in result.rounds if "eval_loss" in round_.metrics] == [0, 2, 4, 5]
    assert not any("rouge_l" in round_.metrics for round_ in result.rounds)


def test_losses_that_are_no_number_end_in_a_divergence(toy_spec: SpecFactory) -> None:
    with refused("round.diverged", "round 1, attempt 3: 0 participants were accepted", "learning_rate"):
        simulate(toy_spec(options={"local": {"learning_rate": 1e12, "optimizer": "sgd", "steps": 8}}))


def test_one_clients_infinite_loss_is_recorded_and_the_round_goes_on(one_bad_client: ExperimentSpec) -> None:
    base, *rounds = simulate(one_bad_client).rounds
    for done in rounds:
        ((name, error),) = done.rejected.items()
        assert error.code == "training.non_finite"
        assert (len(done.accepted), name in done.accepted) == (3, False)
    assert rounds[-1].metrics["eval_loss"] < base.metrics["eval_loss"]


def test_a_round_says_what_it_cost(toy_spec: SpecFactory) -> None:
    result = simulate(toy_spec(options={"K": 4_000}, rounds=2, participants={"simulated": 5, "fraction": 0.6}))
    base, first, second = (round_.cost for round_ in result.rounds)
    assert base == {}
    assert (first["numbers_sent"], first["numbers_received"]) == (4_000, 0)
    assert (second["numbers_sent"], second["numbers_received"]) == (4_000, 12_000), "own seeds: those of all three"
    # 4 steps of 4 sequences took local_seconds in the mean, and the mean of speeds is above the speed of means.
    assert result.rounds[1].metrics["trained_sequences"] == 16
    assert first["sequences_per_second"] * first["local_seconds"] >= 16 * 0.999
    assert first["aggregate_seconds"] > 0
    assert "peak_device_bytes" not in first


def test_over_selection_takes_those_drawn_first_and_the_next_in_the_place_of_the_rejected(
    toy_spec: SpecFactory, one_bad_client: ExperimentSpec
) -> None:
    sampled = {"participants": {"simulated": 5, "fraction": 0.6}, "rounds": 2}
    exactly, more = simulate(toy_spec(**sampled)), simulate(toy_spec(**sampled, round={"over_selection": 0.5}))
    assert more.digest == exactly.digest
    assert more.rounds[2].bytes_down == exactly.rounds[2].bytes_down * 5 // 3
    three_of_four = one_bad_client.participants.model_copy(update={"fraction": 0.75})
    spare = one_bad_client.round.model_copy(update={"over_selection": 1.0})
    done = simulate(one_bad_client.model_copy(update={"participants": three_of_four, "round": spare})).rounds[1:]
    assert [len(item.accepted) for item in done] == [3, 3]


def test_a_missed_quorum_is_tried_again_with_others(one_bad_client: ExperimentSpec) -> None:
    """One of four is asked in a round, and one of them always fails."""
    one_of_four = one_bad_client.participants.model_copy(update={"fraction": 0.25})
    patient = one_bad_client.round.model_copy(update={"attempts": 9})
    spec = one_bad_client.model_copy(update={"participants": one_of_four, "round": patient, "rounds": 4})
    drawn = [sampling.sample(spec, number, sampling.client_names(4)) for number in range(1, 5)]
    accepted = [round_.accepted for round_ in simulate(spec).rounds[1:]]
    assert [len(names) for names in accepted] == [1] * 4
    assert accepted != drawn, "the seed draws the one that fails"
    once = one_bad_client.round.model_copy(update={"attempts": 1})
    with refused("round.diverged"):
        simulate(spec.model_copy(update={"round": once}))


def test_a_template_and_a_token_limit_reach_training_and_evaluation(toy_spec: SpecFactory) -> None:
    plain = simulate(toy_spec(rounds=1)).rounds
    published = simulate(toy_spec(rounds=1, prompt={"template": "alpaca"})).rounds
    assert published[0].metrics["eval_loss"] != plain[0].metrics["eval_loss"]
    assert published[1].metrics["train_loss"] != plain[1].metrics["train_loss"]
    cut = simulate(toy_spec(rounds=1, prompt={"max_tokens": 50})).rounds
    assert cut[1].metrics["truncated_examples"] > plain[1].metrics["truncated_examples"] == 0
    assert cut[0].metrics["eval_loss"] != plain[0].metrics["eval_loss"]


def test_a_token_limit_that_the_template_fills_is_refused(toy_spec: SpecFactory) -> None:
    with refused("spec.invalid", "'paper'") as caught:
        simulate(toy_spec(prompt={"max_tokens": 5}))
    (error,) = caught.value.errors
    assert (caught.value.code, error.field, error.value) == ("spec.invalid", "prompt.max_tokens", 5)


STATUS = Path("/proc/self/status")


@pytest.fixture
def model_dir(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """The tiny model, wide enough that one copy left behind (1 MB) is more than the allocator's noise."""
    config = AutoConfig.from_pretrained(tiny_model_dir, hidden_size=96, intermediate_size=320)
    with torch.random.fork_rng([]):
        LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(tiny_model_dir).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.heavy
@pytest.mark.skipif(not STATUS.exists(), reason="only Linux says how much memory a process has of its own")
@pytest.mark.parametrize(
    "algorithm",
    ["topk", pytest.param("ferret", marks=pytest.mark.slow), pytest.param("fedavg", marks=pytest.mark.slow)],
)
def test_memory_is_flat_over_rounds(toy_spec: SpecFactory, model_dir: Path, tmp_path: Path, algorithm: str) -> None:
    rows = [{"instruction": "Say it.", "input": str(i), "output": f"it is {i}"} for i in range(250)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = toy_spec(
        algorithm,
        options={"local": {"steps": 1, "batch_size": 1, "accumulation": 1}},
        rounds=7,
        model={"source": str(model_dir)},
        dataset={"name": "jsonl", "train": str(tmp_path / "rows.jsonl")},
        participants={"simulated": 200, "fraction": 0.05},
        evaluation={"every": 100, "examples": 2, "generate_examples": 0},
    )
    held: list[float] = []

    def note(done: RoundResult) -> None:
        held.append(_own_megabytes())

    result = simulate(spec, on_round=note)
    assert len({name for done in result.rounds for name in done.accepted}) > 40
    assert held[-1] - held[3] < 2, f"MB after each round: {held}"


def _own_megabytes() -> float:
    """Anonymous memory, once what is free has been given back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"^RssAnon:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000
