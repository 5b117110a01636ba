from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ferret_core.datasets.base import Example
from ferret_core.datasets.codealpaca import Config, Dataset
from ferret_core.protocol.errors import FerretError
from tests.refusals import refused

COUNTS = {"C": 30, "C#": 12, "C++": 30, "Go": 8, "X86-64 Assembly": 2}


def rows(counts: dict[str, int] = COUNTS) -> list[dict[str, str]]:
    """In the official fields, language by language."""
    languages = [language for language, count in counts.items() for _ in range(count)]
    return [{"instruction": f"Print {i}.", "input": name, "output": f"print {i}"} for i, name in enumerate(languages)]


@pytest.fixture
def official(tmp_path: Path) -> str:
    path = tmp_path / "rosetta_alpaca.json"
    path.write_text(json.dumps(rows(), indent=4))
    return str(path)


def failure(config: Config) -> FerretError:
    with refused("dataset.invalid") as caught:
        Dataset(config).train()
    return caught.value


def test_the_official_list_without_assembly_a_tenth_held_out(official: str) -> None:
    dataset = Dataset(Config(path=official, languages=4))
    train, test = dataset.train(), dataset.test()
    assert (len(train), len(test)) == (72, 8)
    assert Counter(example.label for example in train + test) == {"C": 30, "C#": 12, "C++": 30, "Go": 8}
    assert set(train + test) == {Example(r["instruction"], r["input"], r["output"], r["input"]) for r in rows()[:80]}


def test_the_held_out_examples_are_drawn_over_all_languages_by_the_seed(official: str) -> None:
    drawn = [Dataset(Config(path=official, languages=4, test_share=0.5, seed=seed)).test() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert {example.label for example in drawn[0]} == {"C", "C#", "C++", "Go"}


def test_the_most_frequent_languages_are_kept_and_ties_go_by_name(official: str) -> None:
    for languages, kept in ((1, {"C"}), (2, {"C", "C++"}), (3, {"C", "C++", "C#"})):
        train = Dataset(Config(path=official, languages=languages)).train()
        assert {example.label for example in train} == kept


def test_json_lines_with_a_field_of_its_own_for_the_language(tmp_path: Path) -> None:
    path = tmp_path / "code.jsonl"
    lines = [{**row, "input": "", "language": row["input"]} for row in rows({"Python": 10, "Bash": 10})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    config = Config(path=str(path), language="language", languages=2, exclude=())
    assert {(example.input, example.label) for example in Dataset(config).train()} == {("", "Python"), ("", "Bash")}
    error = failure(Config(path=str(path), languages=2, exclude=()))
    assert "line 1: field 'input' is empty and names no language: set dataset.language" in error.detail


def test_an_unknown_language_and_too_few_of_them_name_those_there_are(official: str) -> None:
    error = failure(Config(path=official, exclude=("Pascal",)))
    assert error.errors[0].field == "dataset.exclude"
    assert "'Pascal': no example has this language; the file has 5 others" in error.detail
    error = failure(Config(path=official))
    assert error.errors[0].field == "dataset.languages"
    assert "languages = 9: only 4 are left" in error.detail


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds no examples: the list is empty"),
        ('{"instruction": "a"}', "the file is an object: write a JSON list, or rename a JSON Lines file to .jsonl"),
        ('[{"instruction": "a", "input": "C", "output": "b"}, 7]', "item 2 is a number, not an object"),
        ('[{"instruction": "a", "input": "C"}]', "item 1: field 'output' is missing"),
        ("", "line 1 is not valid JSON"),
    ],
)
def test_a_bad_file_is_named_with_line_or_item_and_field(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "rosetta_alpaca.json"
    path.write_text(content)
    error = failure(Config(path=str(path)))
    assert f"{path}': {message}" in error.detail
    assert error.errors[0].field == "dataset.path"


def test_one_example_cannot_be_split(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps(rows({"C": 1})))
    assert "leaves 1 example and none to hold out" in failure(Config(path=str(path), languages=1, exclude=())).detail
