"""Natural Instructions in its three forms; the hub is a server that speaks its protocol on the loopback interface."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ferret_core.datasets.base import Example
from ferret_core.datasets.natural_instructions import Config, Dataset
from ferret_core.protocol.errors import FerretError
from tests.ferret_core.datasets.hub_reader import read
from tests.refusals import refused

COMMIT = "0123456789abcdef0123456789abcdef01234567"
COUNTS = {"task001_sum": 100, "task002_spell": 20, "task003_tiny": 19, "task900_new": 2000, "task901_few": 7}
TRAIN, TEST = list(COUNTS)[:3], list(COUNTS)[3:]


def task(name: str, count: int | None = None) -> dict[str, Any]:
    """A task in the official fields; every input is one of a kind, and every second has two answers."""
    instances = [
        {"id": f"{name}-{i}", "input": f"{name} {i}", "output": [str(i), "many"][: 1 + i % 2]}
        for i in range(count or COUNTS[name])
    ]
    return {"Definition": [f"Do {name}."], "Categories": ["Test"], "Instances": instances}


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A folder in the official layout: indented JSON, one file per task, and the two lists."""
    folder = tmp_path / "natural-instructions-2.8"
    (folder / "tasks").mkdir(parents=True)
    (folder / "splits/default").mkdir(parents=True)
    for name in COUNTS:
        (folder / "tasks" / f"{name}.json").write_text(json.dumps(task(name), indent=4))
    (folder / "splits/default/train_tasks.txt").write_text("\n".join(TRAIN))
    (folder / "splits/default/test_tasks.txt").write_text("\n".join(TEST) + "\n")
    return folder


@pytest.fixture
def one_file(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl.gz"
    lines = [{"task": name, "split": "train" if name in TRAIN else "test", **task(name)} for name in COUNTS]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return path


def failure(read: Callable[[], Any]) -> FerretError:
    with refused("dataset.invalid") as caught:
        read()
    return caught.value


def per_task(examples: list[Example]) -> Counter[str]:
    return Counter(example.label for example in examples)


def test_a_release_is_read_by_its_lists_and_sampled_as_fedkseed_does(release: Path) -> None:
    dataset = Dataset(Config(tasks=str(release)))
    assert per_task(dataset.train()) == {"task001_sum": 20, "task002_spell": 4}
    assert per_task(dataset.test()) == {"task900_new": 40, "task901_few": 7}


def test_an_example_is_definition_input_and_first_answer(release: Path) -> None:
    examples = Dataset(Config(tasks=str(release), train_share=1)).train()
    assert examples[1] == Example("Do task001_sum.", "task001_sum 1", "1", "task001_sum")


def test_all_references_keep_the_further_answers(release: Path) -> None:
    examples = Dataset(Config(tasks=str(release), train_share=1, references="all")).train()
    assert [example.accepted for example in examples[:2]] == [(), ("many",)]


def test_one_file_gives_the_same_examples_as_the_release(release: Path, one_file: Path) -> None:
    expected, dataset = Dataset(Config(tasks=str(release))), Dataset(Config(tasks=str(one_file)))
    assert (dataset.train(), dataset.test()) == (expected.train(), expected.test())


def test_lists_of_ones_own_choose_and_order_the_tasks(release: Path, one_file: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "chosen.txt"
    chosen.write_text("task900_new\n\n task001_sum \n")
    for tasks in (release, one_file):
        labels = [example.label for example in Dataset(Config(tasks=str(tasks), train_tasks=str(chosen))).train()]
        assert labels == ["task900_new"] * 400 + ["task001_sum"] * 20


def test_long_inputs_are_left_out_before_tasks_are_counted(release: Path) -> None:
    path = release / "tasks/task002_spell.json"
    spell = task("task002_spell")
    spell["Instances"][3]["input"] = "x" * 1024
    path.write_text(json.dumps(spell))
    assert set(per_task(Dataset(Config(tasks=str(release))).train())) == {"task001_sum"}
    spell["Instances"][3]["input"] = "x" * 1023
    path.write_text(json.dumps(spell))
    assert set(per_task(Dataset(Config(tasks=str(release))).train())) == {"task001_sum", "task002_spell"}
    spell["Instances"][3]["input"] = "x" * 10_000
    path.write_text(json.dumps(spell))
    everything = Dataset(Config(tasks=str(release), max_characters=None, train_share=1)).train()
    assert max(len(example.input) for example in everything) == 10_000


def test_limits_hold_for_each_task(release: Path) -> None:
    dataset = Dataset(Config(tasks=str(release), min_instances=1, train_limit=5, test_limit=3))
    assert per_task(dataset.train()) == {"task001_sum": 5, "task002_spell": 4, "task003_tiny": 3}
    assert per_task(dataset.test()) == {"task900_new": 3, "task901_few": 3}


def test_the_seed_decides_what_is_drawn_of_a_task_whatever_the_others_are(release: Path, tmp_path: Path) -> None:
    first, second = (Dataset(Config(tasks=str(release), seed=seed)).train() for seed in (0, 1))
    assert first != second
    assert per_task(first) == per_task(second)
    (tmp_path / "alone.txt").write_text("task002_spell")
    alone = Dataset(Config(tasks=str(release), train_tasks=str(tmp_path / "alone.txt"))).train()
    assert alone == [example for example in first if example.label == "task002_spell"]


def test_a_share_is_taken_as_it_is_written(release: Path) -> None:
    assert per_task(Dataset(Config(tasks=str(release), train_share=0.29)).train())["task001_sum"] == 29


def test_a_task_that_a_list_names_and_nobody_has_is_named_with_its_line(release: Path, one_file: Path) -> None:
    (release / "tasks/task002_spell.json").unlink()
    error = failure(Dataset(Config(tasks=str(release))).train)
    assert error.errors[0].field == "dataset.tasks"
    assert str(release / "splits/default/train_tasks.txt") in error.detail
    assert f"line 2 names 'task002_spell', but there is no {release}/tasks/task002_spell.json" in error.detail
    mine = release / "mine.txt"
    mine.write_text("task001_sum\ntask77\n")
    error = failure(Dataset(Config(tasks=str(one_file), test_tasks=str(mine))).test)
    assert error.errors[0].field == "dataset.test_tasks"
    assert f"line 2 names 'task77', which is not in {one_file}" in error.detail


@pytest.mark.parametrize(
    ("text", "message"),
    [("\n\n", "names no task"), ("task001_sum\n\ntask001_sum", "line 3 names 'task001_sum' again, after line 1")],
)
def test_a_list_that_names_nothing_or_something_twice_is_refused(release: Path, text: str, message: str) -> None:
    (release / "splits/default/train_tasks.txt").write_text(text)
    assert message in failure(Dataset(Config(tasks=str(release))).train).detail


def test_a_list_that_cannot_be_read_is_named(release: Path, tmp_path: Path) -> None:
    error = failure(Dataset(Config(tasks=str(release), train_tasks=str(tmp_path / "none"))).train)
    assert "cannot be read (No such file or directory)" in error.detail
    assert error.errors[0].field == "dataset.train_tasks"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Definition": []}, "field 'Definition' is an empty list"),
        ({"Instances": {"input": "a"}}, "field 'Instances' is an object, not a list of objects"),
        ({"Instances": [{"input": "a", "output": ["b"]}, "c"]}, "Instances[1] is a text, not an object"),
        ({"Instances": [{"input": "a", "output": [1]}]}, "Instances[0]: field 'output[0]' is a number"),
        ({"Instances": [{"input": ["a"], "output": ["b"]}]}, "Instances[0]: field 'input' is a list"),
    ],
)
def test_a_wrong_field_is_named_by_file_and_instance(release: Path, change: dict[str, Any], message: str) -> None:
    path = release / "tasks/task001_sum.json"
    path.write_text(json.dumps(task("task001_sum") | change))
    error = failure(Dataset(Config(tasks=str(release))).train)
    assert f"{path}': {message}" in error.detail


def test_a_wrong_field_of_one_file_is_named_by_line_and_instance(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    bad = {"task": "b", "split": "train", "Definition": ["B."], "Instances": [{"input": "x", "output": []}]}
    good = {"task": "a", "split": "train", **task("task001_sum")}
    path.write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    dataset = Dataset(Config(tasks=str(path)))
    assert "line 2, Instances[0]: field 'output' is an empty list" in failure(dataset.train).detail
    path.write_text(json.dumps({"task": "a", **task("task001_sum")}))
    assert "line 1: field 'split' is missing" in failure(dataset.train).detail


def test_a_broken_task_file_is_named_with_its_line(release: Path) -> None:
    path = release / "tasks/task001_sum.json"
    path.write_text('{\n  "Definition": ["Do."],\n  "Instances": [,]\n}')
    assert f"{path}': line 3 is not valid JSON" in failure(Dataset(Config(tasks=str(release))).train).detail


def test_nothing_left_is_an_error_that_says_what_to_change(release: Path) -> None:
    error = failure(Dataset(Config(tasks=str(release), max_characters=1)).train)
    assert "no train task has instances that are short enough" in error.detail


@pytest.mark.parametrize("options", [{"tasks": "a", "revision": "b"}, {"train_tasks": "a"}])
def test_options_of_two_sources_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Config.model_validate(options)


def on_the_hub(commit: str) -> dict[str, bytes]:
    """What a hub answers about a repository with a JSON Lines file per task, and a line per answer."""
    files: dict[str, bytes] = {}
    for name in COUNTS:
        rows = [
            {
                "id": item["id"],
                "task_name": name,
                "definition": f"Do {name}.",
                "inputs": item["input"],
                "targets": target,
            }
            for item in task(name)["Instances"]
            for target in item["output"]
        ]
        split = "train" if name in TRAIN else "test"
        files[f"{split}/{name}_{split}.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows).encode()
    api = "/api/datasets/Muennighoff/natural-instructions"
    tree = [{"type": "file", "path": path, "size": len(body), "oid": "0" * 40} for path, body in files.items()]
    tree.append({"type": "file", "path": "README.md", "size": 1, "oid": "0" * 40})
    info = {"id": "Muennighoff/natural-instructions", "sha": commit, "siblings": [{"rfilename": p} for p in files]}
    return {
        f"{api}/revision/main": json.dumps(info).encode(),
        f"{api}/tree/{commit}?recursive=true&expand=false": json.dumps(tree).encode(),
        f"{api}/tree/{commit}?recursive=True&expand=False": json.dumps(tree).encode(),
        **{f"/datasets/Muennighoff/natural-instructions/resolve/{commit}/{p}": body for p, body in files.items()},
    }


def test_reads_the_hub_and_joins_the_answers_of_an_instance(tmp_path: Path, release: Path, hub: Any) -> None:
    with hub(on_the_hub(COMMIT)) as endpoint:
        (found,) = read("natural_instructions", endpoint, tmp_path / "home", {"references": "all"})
    local = Dataset(Config(tasks=str(release), references="all"))
    assert found == json.loads(json.dumps([local.train(), local.test()]))
