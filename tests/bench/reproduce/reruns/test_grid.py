from __future__ import annotations

from dataclasses import replace
from shutil import copytree

import pytest

from ferret_bench.reproduce.reruns import settings, studies, tuning
from ferret_bench.reproduce.reruns.grid import Asked, grid
from ferret_bench.reproduce.reruns.settings import shipped
from tests.refusals import refused

STUDIES = [(kind, name) for kind in ("table", "figure") for name in studies.names(kind)]


@pytest.fixture
def official(tmp_path):
    """A folder with every file that datasets are looked for in, all empty."""
    for dataset in shipped("datasets.toml").values():
        for names in dataset.get("files", {}).values():
            (tmp_path / names[0]).parent.mkdir(exist_ok=True)
            (tmp_path / names[0]).touch()
    return tmp_path


@pytest.mark.parametrize(("kind", "name"), STUDIES)
def test_every_row_of_every_study_is_a_valid_experiment(kind, name, official, tiny_model_dir):
    study = studies.study(kind, name)
    known = settings.read(None, [], study, absolute_paths=True)
    found = grid(study, known, Asked(models=[str(tiny_model_dir)], data=official, rows=("all",), seeds=1))
    assert {cell.row.family for cell in found.cells} == set(shipped("rows.toml"))
    assert {column.dataset for column in found.columns} == set(study.datasets)
    assert found.skipped == []


def test_cells_come_seed_by_seed_with_keys_that_stay(toy_grid):
    found = toy_grid()
    assert [(cell.row.name, cell.seed) for cell in found.cells] == [
        ("ferret", 1),
        ("fedavg", 1),
        ("ferret", 2),
        ("fedavg", 2),
    ]
    assert len({cell.key for cell in found.cells}) == 4
    assert [cell.key for cell in toy_grid().cells] == [cell.key for cell in found.cells]
    assert found.cells[0].spec.seed == 1


def test_a_run_has_the_same_key_in_other_folders(official, tmp_path_factory):
    study = studies.study("figure", "frontier")
    known = settings.read(None, [], study, absolute_paths=True)
    keys = []
    for data in (official, copytree(official, tmp_path_factory.mktemp("elsewhere"), dirs_exist_ok=True)):
        (data / "model").mkdir()
        asked = Asked(models=[str(data / "model")], data=data, rows=("fedavg",), datasets=("gsm8k",), seeds=2)
        keys.append([cell.key for cell in grid(study, known, asked).cells])
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 2


def test_a_study_of_forgetting_reads_its_other_datasets_in_results_but_not_in_trials(official, tiny_model_dir):
    study = studies.study("figure", "chat_model")
    known = settings.read(None, [], study, absolute_paths=True)
    asked = Asked(models=[str(tiny_model_dir)], data=official, rows=("fedavg",), datasets=("dolly",), seeds=1)
    (cell,) = grid(study, known, asked).cells
    assert {name: spec.dataset.name for name, spec in cell.others.items()} == {
        name: name for name in ("gsm8k", "codealpaca", "natural_instructions")
    }
    assert {len(trial.others) for trial in tuning.search(study, known, asked, 1).cells} == {0}


def test_a_variant_is_asked_for_by_its_own_name(official, tiny_model_dir, tmp_path):
    study = studies.study("figure", "frontier")
    file = tmp_path / "own.toml"
    file.write_text("[ferret-7400]\nalgorithm.local.steps = 3\n")
    known = settings.read(file, [], study, absolute_paths=True)
    rows = ("fedavg", "ferret-7400", "ferret", "powersgd-r4")
    found = grid(study, known, Asked(models=[str(tiny_model_dir)], data=official, rows=rows, datasets=("gsm8k",)))
    assert [row.name for row in found.rows] == [
        *("fedavg", "ferret-7400", "ferret-1000", "ferret-64000", "ferret-250000"),
        *("ferret-sparse-7400", "ferret-curved-7400", "powersgd-r4"),
    ]
    assert found.cells[1].spec.algorithm.options["bytes_per_round"] == 7400
    assert [cell.spec.algorithm.options["local"]["steps"] for cell in found.cells[1:3]] == [3, 10]


def test_a_default_that_is_written_out_is_the_same_run(toy_grid):
    written = toy_grid(["server.learning_rate=1.0"])
    assert [cell.key for cell in written.cells] == [cell.key for cell in toy_grid().cells]
    changed = toy_grid(["fedavg.server.learning_rate=0.5"])
    assert [cell.key == other.key for cell, other in zip(changed.cells, written.cells, strict=True)] == [
        True,
        False,
        True,
        False,
    ]


def test_what_is_not_installed_is_skipped_and_named(toy_grid):
    found = toy_grid(["fedavg.algorithm.name=fedsomething"])
    assert found.skipped == ["algorithm fedsomething"]
    assert [row.name for row in found.rows] == ["ferret"]


def test_nothing_left_to_run_is_an_error(toy_grid):
    with refused("request.invalid", "there is no algorithm fedsomething"):
        toy_grid(["algorithm.name=fedsomething"])


@pytest.mark.parametrize(
    ("change", "value"), [({"rows": ("fedavgg",)}, "fedavgg"), ({"datasets": ("dollie",)}, "dollie")]
)
def test_an_unknown_row_or_dataset_is_refused(study, asked, change, value):
    with refused("request.invalid", value):
        grid(study, settings.read(None, [], study, absolute_paths=True), replace(asked, **change))


def test_a_wrong_option_is_refused_before_anything_runs(toy_grid):
    with refused("spec.invalid", "algorithm.mu"):
        toy_grid(["fedavg.algorithm.mu=1"])


def test_a_folder_without_the_official_files_says_what_it_lacks(study, asked, tmp_path):
    with refused("dataset.invalid", "train.jsonl"):
        grid(study, settings.read(None, [], study, absolute_paths=True), replace(asked, data=tmp_path))


def test_models_of_the_same_name_are_told_apart(study, asked):
    known = settings.read(None, [], study, absolute_paths=True)
    found = grid(study, known, replace(asked, models=("/one/llama", "/two/llama", "/three")))
    assert [column.model for column in found.columns] == ["/one/llama", "/two/llama", "/three"]
    assert found.cells[0].spec.model.source == "/one/llama"


def test_a_record_names_files_without_their_folders(toy_grid, tiny_model_dir):
    cell = toy_grid().cells[0]
    kept = cell.record("simulate", 1.0, {}).spec
    assert kept["model"]["source"] == tiny_model_dir.name
    assert kept["dataset"]["train"] == "train.jsonl"
    assert str(tiny_model_dir.parent) not in str(kept)
