from __future__ import annotations

from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from tests.refusals import refused

TOML = """
name = "mine"
[model]
source = "model"
[dataset]
name = "jsonl"
train = "train.jsonl"
[participants]
simulated = 2
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A specification whose model and data lie beside it; the working folder is another."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder = tmp_path / "mine"
    (folder / "model").mkdir(parents=True)
    (folder / "train.jsonl").touch()
    (folder / "mine.toml").write_text(TOML)
    return folder / "mine.toml"


@pytest.mark.parametrize("kind", [str, Path])
def test_relative_paths_are_the_files_own(file: Path, kind: type) -> None:
    spec = ExperimentSpec.from_toml(kind(file))
    assert spec.model.source == str(file.parent / "model")
    assert spec.dataset.options["train"] == str(file.parent / "train.jsonl")
    assert ExperimentSpec.from_toml(kind(file), absolute_paths=False).model.source == "model"


def test_a_text_of_several_lines_is_the_toml_itself(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert ExperimentSpec.from_toml(TOML) == ExperimentSpec.from_toml(file)


def test_variables_are_put_in_and_all_that_are_missing_are_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(TOML.replace('"mine"', '"${WHO}"').replace('"model"', '"${NOT_SET}"'))
    with pytest.raises(FerretError) as raised:
        ExperimentSpec.from_toml(file)
    assert [error.field for error in raised.value.errors] == ["name", "model.source"]
    assert "set the environment variable WHO, or write the value itself" in raised.value.errors[0].message
    monkeypatch.setenv("WHO", "me")
    monkeypatch.setenv("NOT_SET", "org/model")
    assert ExperimentSpec.from_toml(file).name == "me"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TOML + "rouns = 3\n", "participants.rouns = 3: is unknown"),
        (TOML.replace("train.jsonl", "trian.jsonl"), "dataset.train = 'trian.jsonl': no such file in"),
        ("name = =\n", "is not TOML: Invalid value"),
    ],
    ids=["unknown field", "no such file", "no TOML"],
)
def test_what_is_wrong_is_told(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    with refused("spec.invalid", words):
        ExperimentSpec.from_toml(file)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with refused("spec.invalid", "nowhere.toml"):
        ExperimentSpec.from_toml("nowhere.toml")
