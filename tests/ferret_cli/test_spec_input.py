from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ferret_cli import options, spec_input
from ferret_core.experiment.presets import PRESETS
from ferret_core.protocol.errors import FerretError
from tests.refusals import refused


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """The working folder is not the file's."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")


def test_paths_beside_the_file_are_made_absolute(spec_file):
    spec = spec_input.load(spec_file)
    assert spec.model.source == str(spec_file.parent / "model")
    assert spec.dataset.options["train"] == str(spec_file.parent / "train.jsonl")


def test_paths_in_the_working_folder_count_too(spec_file):
    Path("test.jsonl").touch()
    spec = spec_input.load(spec_file, ["dataset.test=test.jsonl"])
    assert spec.dataset.options["test"] == str(Path.cwd() / "test.jsonl")


def test_a_set_path_is_the_working_folders_not_the_files(spec_file):
    Path("train.jsonl").touch()
    assert spec_input.load(spec_file, ["dataset.train=train.jsonl"]).dataset.options["train"] == str(
        Path.cwd() / "train.jsonl"
    )


@pytest.mark.parametrize("text", ["missing.jsonl", "../nowhere/model", "./data.gz"])
def test_a_relative_path_that_leads_nowhere_is_told_with_where_it_was_sought(spec_file, text):
    with pytest.raises(FerretError) as raised:
        spec_input.load(spec_file, [f"dataset.train={text}"])
    assert raised.value.detail == f"dataset.train = {text!r}: no such file in {Path.cwd()}"
    spec_file.write_text(spec_file.read_text().replace("train.jsonl", text))
    with refused("spec.invalid", f"no such file in {spec_file.parent} or {Path.cwd()}"):
        spec_input.load(spec_file)
    assert spec_input.load(spec_file, absolute_paths=False).dataset.options["train"] == text


def test_names_and_what_does_not_exist_are_left_alone(spec_file):
    (spec_file.parent / "jsonl").mkdir()
    spec = spec_input.load(spec_file, ["model.source=org/model-on-the-hub"])
    assert spec.dataset.name == "jsonl"
    assert spec.model.source == "org/model-on-the-hub"


def test_paths_stay_as_they_are_for_a_server_elsewhere(spec_file):
    assert spec_input.load(spec_file, absolute_paths=False).model.source == "model"


@pytest.mark.parametrize(
    ("assignment", "read"),
    [
        ("rounds=7", lambda spec: spec.rounds == 7),
        ("participants.fraction=0.5", lambda spec: spec.participants.fraction == 0.5),
        ("algorithm.name=fedavg", lambda spec: spec.algorithm.name == "fedavg"),
        ('algorithm={name="ferret", K=64}', lambda spec: spec.algorithm.options == {"K": 64}),
        ("dataset.shares=[0.9, 0.1]", lambda spec: spec.dataset.options["shares"] == [0.9, 0.1]),
        ("name=two words", lambda spec: spec.name == "two words"),
        ("name = a = b", lambda spec: spec.name == "a = b"),
    ],
)
def test_set_takes_toml_values_and_plain_text(spec_file, assignment, read):
    assert read(spec_input.load(spec_file, [assignment]))


def test_the_last_set_wins_and_keeps_the_rest_of_the_table(spec_file):
    spec = spec_input.load(spec_file, ["dataset.test_limit=5", "rounds=3", "rounds=4"])
    assert spec.rounds == 4
    assert spec.dataset.options["test_limit"] == 5
    assert "train" in spec.dataset.options


def test_a_variable_that_a_change_replaces_need_not_be_set(spec_file):
    spec_file.write_text(spec_file.read_text().replace('"train.jsonl"', '"${NOT_SET_ANYWHERE}"'))
    spec = spec_input.load(spec_file, ["dataset.train=/data/mine.jsonl"])
    assert spec.dataset.options["train"] == "/data/mine.jsonl"
    spec = spec_input.load(spec_file, ["dataset={name='gsm8k', revision='abc'}"])
    assert spec.dataset.options == {"revision": "abc"}


def test_another_algorithm_drops_the_options_it_does_not_have_and_says_which(spec_file, capsys):
    spec_file.write_text(spec_file.read_text() + 'algorithm = {name = "ferret", K = 64, local = {steps = 2}}\n')
    spec = spec_input.load(spec_file, ["algorithm.name=fedavg"])
    assert (spec.algorithm.name, spec.algorithm.options) == ("fedavg", {"local": {"steps": 2}})
    assert capsys.readouterr().err == "dropped by these changes: algorithm.K = 64\n"
    spec_input.load(spec_file, ["algorithm.K=65"])
    assert capsys.readouterr().err == ""


def test_a_preset_replaces_what_the_file_says_and_a_change_goes_before_both(spec_file):
    with spec_file.open("a") as file:
        file.write("seed = 4\nalgorithm.name = 'fedavg'\nalgorithm.local.steps = 3\n")
    spec = spec_input.load(spec_file, ["checkpoint.keep=2"], preset="fast")
    assert (spec.rounds, spec.seed, spec.algorithm.name, spec.checkpoint.keep) == (5, 4, "ferret", 2)
    assert spec.model_dump()["algorithm"]["local"]["steps"] == 5


def test_the_option_names_every_preset(spec_file):
    _, option = get_args(options.Preset)
    assert all(preset.name in option.help for preset in PRESETS)


def test_unset_takes_a_value_back_to_its_default(spec_file):
    assert spec_input.load(spec_file, unset=["rounds"]).rounds == 12


@pytest.mark.parametrize(
    ("assignments", "words"),
    [
        (["model.source=${NOT_SET_ANYWHERE}/x"], ["model.source", "${NOT_SET_ANYWHERE}/x", "environment variable"]),
        (["rounds"], ["--set", "rounds", "a.b=value"]),
        ([".=1"], ["--set", "a.b=value"]),
    ],
)
def test_what_cannot_be_set_is_named(spec_file, assignments, words):
    with pytest.raises(FerretError) as raised:
        spec_input.load(spec_file, assignments)
    assert all(word in raised.value.detail for word in words)
    assert raised.value.code == "spec.invalid"


def test_what_is_taken_away_is_null():
    assert spec_input.removed(["algorithm.K", "round.quorum", "round.attempts", "seed"]) == {
        "algorithm": {"K": None},
        "round": {"quorum": None, "attempts": None},
        "seed": None,
    }
    with refused("spec.invalid", "--unset", "'a..b'"):
        spec_input.removed(["a..b"])


def test_a_search_space_is_told_apart(spec_file):
    spec_file.write_text(f"{spec_file.read_text()}\n[tune]\ntrials = 4\n")
    with refused("spec.invalid", "tune = 'trials'"):
        spec_input.load(spec_file)
    assert spec_input.load(spec_file, unset=["tune"]).rounds


@pytest.mark.parametrize(("text", "word"), [("name = = 1", "line 1"), (None, "No such file"), (b"\xff", "TOML")])
def test_a_file_that_is_no_toml(tmp_path, text, word):
    file = tmp_path / "broken.toml"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with refused("spec.invalid", word) as raised:
        spec_input.load(file)
    assert str(file) in raised.value.detail
    assert raised.value.problem.exit == 2
