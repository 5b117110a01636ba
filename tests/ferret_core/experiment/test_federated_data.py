from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from ferret_core.experiment import federated_data
from ferret_core.experiment.federated_data import FederatedData, deal
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

BY_LABEL = {"partition": {"name": "natural"}}


def test_examples_are_dealt_to_named_clients_by_the_specifications_seed(toy_spec: SpecFactory) -> None:
    dealt = deal(toy_spec())
    assert list(dealt.clients) == ["client-001", "client-002", "client-003"]
    assert sorted(index for shard in dealt.clients.values() for index in shard) == list(range(60))
    assert deal(toy_spec()) == dealt
    assert deal(toy_spec(seed=6)).clients != dealt.clients


def test_a_natural_client_holds_its_label_alone(toy_spec: SpecFactory) -> None:
    dealt = deal(toy_spec(**BY_LABEL))
    assert [{dealt.train[index].label for index in shard} for shard in dealt.clients.values()] == [
        {"category 0"},
        {"category 1"},
        {"category 2"},
    ]


def test_the_examples_of_a_unit_stay_with_one_client(toy_spec: SpecFactory, tmp_path: Path) -> None:
    source = Path(toy_spec().dataset.options["train"])
    rows = [json.loads(line) | {"patient": number % 20} for number, line in enumerate(source.read_text().splitlines())]
    path = tmp_path / "patients.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    privacy = {"unit": "field:patient", "epsilon": 8.0, "batch": 1, "records_least": 5}
    dataset = {"name": "jsonl", "train": str(path), "test": toy_spec().dataset.options["test"]}
    dealt = deal(toy_spec(dataset=dataset, privacy=privacy))
    assert sorted(index for shard in dealt.clients.values() for index in shard) == list(range(60))
    patients = [{dealt.train[index].unit for index in shard} for shard in dealt.clients.values()]
    assert sum(map(len, patients)) == 20
    with refused("privacy.unit_missing", "gsm8k has no such field", field="privacy.unit"):
        deal(toy_spec(dataset={"name": "gsm8k"}, privacy=privacy))


def test_real_participants_bring_their_own_data(toy_spec: SpecFactory) -> None:
    dealt = deal(toy_spec(participants={"edge": 2}))
    assert (dealt.train, dealt.clients, len(dealt.held_out)) == ([], {}, 10)


def test_a_validation_split_is_set_aside_before_the_clients_get_theirs(
    toy_spec: SpecFactory, toy_data: tuple[Path, Path], tmp_path: Path
) -> None:
    dataset = {"name": "jsonl", "train": str(toy_data[0]), "test": str(tmp_path / "never-read.jsonl")}
    choosing = {"dataset": dataset, "evaluation": {"split": "validation"}}
    dealt = deal(toy_spec(**choosing))
    assert (len(dealt.train), len(dealt.held_out)) == (54, 6)
    assert not set(dealt.train) & set(dealt.held_out)
    assert sorted(index for shard in dealt.clients.values() for index in shard) == list(range(54))
    assert deal(toy_spec(seed=6, **choosing)).held_out == dealt.held_out
    assert deal(toy_spec(participants={"edge": 2}, **choosing)).held_out == dealt.held_out


def test_the_test_split_is_measured_without_setting_anything_aside(toy_spec: SpecFactory) -> None:
    assert deal(toy_spec(evaluation={"validation_share": 0.5})) == deal(toy_spec())


GUARDED = {"step_guard": True, "development_examples": 4}


def test_development_examples_are_nobody_elses(
    toy_spec: SpecFactory, toy_data: tuple[Path, Path], tmp_path: Path
) -> None:
    train, test = (path.read_text().splitlines(keepends=True) for path in toy_data)
    (tmp_path / "train.jsonl").write_text("".join(line for line in train if line not in test))
    dataset = {"name": "jsonl", "train": str(tmp_path / "train.jsonl"), "test": str(toy_data[1])}
    asked = {"dataset": dataset, "server": GUARDED, "evaluation": {"validation_share": 0.5}}
    dealt = deal(toy_spec(**asked))
    assert len(dealt.development) == 4
    assert not {*dealt.development} & {*dealt.train, *dealt.held_out}
    assert deal(toy_spec(seed=6, **asked)).development == dealt.development
    assert deal(toy_spec(participants={"edge": 2}, **asked)).development == dealt.development


def test_public_examples_that_are_test_examples_too_are_refused(
    toy_spec: SpecFactory, toy_data: tuple[Path, Path]
) -> None:
    dataset = {"name": "jsonl", "train": str(toy_data[0]), "test": str(toy_data[0])}
    with refused("dataset.invalid", "test examples too", field="algorithm.public_examples"):
        deal(toy_spec("fed_sb", dataset=dataset))


def test_nor_are_they_evaluated_where_that_is_the_validation_split(toy_spec: SpecFactory) -> None:
    asked = {"evaluation": {"split": "validation", "validation_share": 0.4}}
    dealt, all_ = deal(toy_spec(server=GUARDED, **asked)), deal(toy_spec(**asked))
    assert dealt.train == all_.train
    assert {*dealt.development} | {*dealt.held_out} == {*all_.held_out}
    assert not {*dealt.development} & {*dealt.held_out}


def test_a_shard_is_tokenised_when_it_is_asked_for_and_kept(
    toy_spec: SpecFactory, tiny_tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = federated_data.shard_of

    def counting(examples: Any, *rest: Any) -> Any:
        asked.append(len(examples))
        return real(examples, *rest)

    monkeypatch.setattr(federated_data, "shard_of", counting)
    data = FederatedData(toy_spec(participants={"simulated": 60}), tiny_tokenizer, 128)
    assert asked == []
    assert len(data.shard("client-007")) == 1
    assert data.shard("client-007") is data.shard("client-007")
    assert asked == [1]


def test_prompts_longer_than_the_context_are_counted(
    toy_spec: SpecFactory, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    assert FederatedData(toy_spec(), tiny_tokenizer, 128).shard("client-001").truncated == 0
    short = FederatedData(toy_spec(), tiny_tokenizer, 24).shard("client-001")
    assert short.truncated == len(short) == 20
