from __future__ import annotations

from dataclasses import replace

from ferret_bench.reproduce.reruns import settings
from ferret_bench.reproduce.reruns.studies import Variant
from tests.refusals import refused


def read(study, *assignments, file=None):
    return settings.read(file, assignments, study, absolute_paths=False)


def part(study, known, dataset="gsm8k", row="fedavg", asked=None):
    return known.part(study, known.row(row), dataset, asked or {})


def test_the_papers_setting_is_the_default(study):
    known = read(study)
    assert part(study, known)["rounds"] == 20
    assert part(study, known)["algorithm"]["local"]["learning_rate"] == 3e-4
    dolly = part(study, known, "dolly", "ferret_paper")
    assert (dolly["rounds"], dolly["server"]["learning_rate"]) == (20, 1.0)
    assert dolly["participants"] == {"simulated": 200, "fraction": 0.05}
    assert not {"label", "group", "printed", "files", "gsm8k"} & dolly.keys()


def test_later_layers_win_and_single_values_over_all(study, tmp_path):
    file = tmp_path / "tuned.toml"
    file.write_text("[fedavg]\nrounds = 3\n[fedavg.gsm8k]\nrounds = 4\n[gsm8k]\nevaluation.max_new_tokens = 7\n")
    known = read(study, file=file)
    assert part(study, known)["rounds"] == 4
    assert part(study, known, "dolly")["rounds"] == 3
    assert part(study, known)["evaluation"]["max_new_tokens"] == 7
    assert part(replace(study, parts={"rounds": 5}), known)["rounds"] == 5
    assert part(study, known, asked={"rounds": 6})["rounds"] == 6
    assert part(study, read(study, "rounds=7", file=file), asked={"rounds": 6})["rounds"] == 7


def test_a_value_can_be_for_one_dataset_or_one_row(study):
    known = read(study, "rounds=1", "dolly.rounds=2", "fedavg.rounds=3")
    rounds = {
        (dataset, row): part(study, known, dataset, row)["rounds"]
        for dataset in ("gsm8k", "dolly")
        for row in ("ferret", "fedavg")
    }
    assert rounds == {
        ("gsm8k", "ferret"): 1,
        ("dolly", "ferret"): 2,
        ("gsm8k", "fedavg"): 3,
        ("dolly", "fedavg"): 3,
    }


def test_a_variant_has_settings_of_its_own(study):
    way = Variant("K = 16", {"algorithm": {"K": 16}})
    studied = replace(study, variants={"ferret": {"K16": way}})
    known = read(studied, "ferret-K16.seed=9")
    row = known.row("ferret", "K16", way)
    assert (row.name, row.label, row.series) == ("ferret-K16", "Ferret, K = 16", "Ferret")
    assert known.row("ferret", "K16", Variant("sparse, K = 16", {})).series == "Ferret, sparse"
    found = known.part(studied, row, "gsm8k", {})
    assert (found["algorithm"]["K"], found["seed"]) == (16, 9)
    assert "seed" not in part(studied, known, row="ferret")


def test_a_misspelt_row_in_a_file_is_not_ignored(study, tmp_path):
    (tmp_path / "tuned.toml").write_text("[fedavgg]\nrounds = 3\n")
    with refused("spec.invalid", "fedavgg", "neither a row nor a dataset"):
        read(study, file=tmp_path / "tuned.toml")
