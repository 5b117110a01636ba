from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_cli.tune.plan import Plan, read
from tests.refusals import refused

Write = Callable[..., Path]
RATE = "algorithm.local.learning_rate = { log = [1e-4, 1e-1] }"
CLIP = "algorithm.local.clip_norm = { choice = [0.5, 1.0], unset = true }"


@pytest.fixture
def plan(tune_file: Write) -> Callable[..., Plan]:
    return lambda *lines, **options: read(tune_file(*lines), **options)


def refusal(plan: Callable[..., Plan], *lines: str, **options: Any) -> Any:
    with refused("spec.invalid") as raised:
        plan(*lines, **options)
    return raised.value


def test_trials_are_measured_on_the_validation_split_and_keep_no_models(plan: Callable[..., Plan]) -> None:
    spec = plan(RATE).spec({"algorithm": {"local": {"learning_rate": 0.5}}}, seed=1001, name="trial")
    assert (spec.evaluation.split, spec.evaluation.examples) == ("validation", 10)
    assert spec.checkpoint.every >= spec.rounds
    assert (spec.seed, spec.name, spec.algorithm.options["local"]["learning_rate"]) == (1001, "trial", 0.5)


def test_the_file_may_say_otherwise(plan: Callable[..., Plan]) -> None:
    found = plan(RATE, assignments=["evaluation.split=test", "checkpoint.every=1"])
    assert found.spec({}).evaluation.split == "test"
    assert found.spec({}).checkpoint.every == 1


def test_the_best_is_the_file_without_the_search_and_on_the_test_split(plan: Callable[..., Plan]) -> None:
    found = plan(RATE, CLIP, assignments=["evaluation.split=validation"])
    values = {"algorithm.local.learning_rate": 0.25, "algorithm.local.clip_norm": "unset"}
    document = found.document(values)
    assert document["algorithm"]["local"] == {
        "optimizer": "adam",
        "steps": 2,
        "batch_size": 4,
        "accumulation": 1,
        "precision": "float32",
        "learning_rate": 0.25,
    }
    assert document["evaluation"] == {"examples": 10, "generate_examples": 0}
    spec = found.final(values)
    assert (spec.seed, spec.evaluation.split, spec.algorithm.options["local"]["clip_norm"]) == (5, "test", None)


def test_another_algorithm_comes_without_the_options_of_the_one_before(plan: Callable[..., Plan]) -> None:
    table = "algorithm = { choice = [{ name = 'ferret', K = 64 }, { name = 'topk' }] }"
    found = plan(table)
    assert found.spec(found.part({"algorithm": "name = topk"})).algorithm.name == "topk"


def test_a_grid_is_its_own_budget(plan: Callable[..., Plan]) -> None:
    assert plan(RATE.replace("}", ", points = 4 }"), CLIP, "sampler = 'grid'").trials == 12
    assert plan(RATE).trials == 20


def test_paths_of_a_choice_lie_beside_the_file(plan: Callable[..., Plan], tune_file: Write, toy_data: Any) -> None:
    other = tune_file().with_name("other.jsonl")
    other.write_text(toy_data[0].read_text())
    found = plan(f"dataset.train = {{ choice = ['{toy_data[0]}', 'other.jsonl'] }}")
    assert list(found.space["dataset"]["train"].options) == [str(toy_data[0]), str(other)]


@pytest.mark.parametrize(
    ("lines", "field", "value", "says"),
    [
        (
            ["algorithm.local.learning_rat = { log = [1e-4, 1.0] }"],
            "tune.algorithm.local.learning_rat",
            1e-4,
            "mean learning_rate?",
        ),
        (["servr.learning_rate = { log = [1, 2] }"], "tune.servr", "{'learning_rate': 1.0}", "did you mean server?"),
        (["algorithm.local.steps = { uniform = [1, 8] }"], "tune.algorithm.local.steps", 5.326, "must be an integer"),
        (["server.momentum = { uniform = [0.0, 1.0] }"], "tune.server.momentum", 1.0, "less than 1"),
        (["algorithm.local.optimizer = { choice = ['adam', 'adm'] }"], "tune.algorithm.local.optimizer", "adm", "adam"),
        (["rounds = [1, 2]"], "tune.rounds", [1, 2], "is not a range"),
        (["trails = 3", RATE], "tune.trails", 3, "did you mean trials?"),
        (["trials = 0", RATE], "tune.trials", 0, "must be at least 1"),
        (["metric = 'los'", RATE], "tune.metric", "los", "choose one of eval_loss, rouge_l"),
        (["sampler = 'gird'", RATE], "tune.sampler", "gird", "'grid'"),
        (["sampler = 'grid'", RATE], "tune.algorithm.local.learning_rate", [1e-4, 0.1], "add points = 4"),
        (["sampler = 'grid'", "trials = 3", CLIP], "tune.trials", 3, "tries all its points"),
        (["sampler = 'grid'", "rounds = { int = [1, 20000] }"], "tune.sampler", "grid", "makes 20000 trials"),
        ([RATE.replace("}", ", points = 4 }")], "tune.algorithm.local.learning_rate.points", 4, "sampler = 'grid'"),
        (
            ["evaluation.examples = { int = [1, 9] }"],
            "tune.evaluation",
            "{'examples': {'int': [1, 9]}}",
            "the same for all",
        ),
        (["trials = 3"], "tune", "{'trials': 3}", "has no dimension"),
    ],
)
def test_what_is_wrong_in_the_table_is_named_with_field_and_value(
    plan: Callable[..., Plan], lines: list[str], field: str, value: Any, says: str
) -> None:
    error = refusal(plan, *lines)
    (wrong,) = error.errors
    assert (wrong.field, wrong.value) == (field, value)
    assert says in wrong.message


@pytest.mark.parametrize(
    ("assignment", "field"),
    [("rounds=0", "rounds"), ("participants.edge=1", "participants.edge"), ("seed=1002", "seed")],
)
def test_what_is_wrong_with_the_experiment_is_named_as_it_stands_there(
    plan: Callable[..., Plan], assignment: str, field: str
) -> None:
    error = refusal(plan, RATE, "seeds = 2", assignments=[assignment])
    assert [wrong.field for wrong in error.errors] == [field]


def test_a_file_without_a_search_is_told_what_to_add(tune_file: Write) -> None:
    file = tune_file()
    file.write_text(file.read_text().partition("[tune]")[0])
    with refused("spec.invalid", "algorithm.local.learning_rate"):
        read(file)
