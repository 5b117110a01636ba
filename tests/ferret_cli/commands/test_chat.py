"""``ferret chat``: an exported model asked in the words it was trained with."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from ferret_cli.commands import chat
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat_template import fitting
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.evaluation import streaming_generation
from ferret_core.evaluation.generate import generate
from ferret_core.evaluation.streaming_generation import GeneratedAnswer
from ferret_core.models.load import load
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.experiments import Artifact
from ferret_core.protocol.spec import ModelSpec
from ferret_core.sample import model_path
from tests import documents

QUESTION, INPUT = "Repeat the sentence.", "Anna has a red kite."
Ferret = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The demo's model as an export leaves it."""
    folder = shutil.copytree(model_path(), tmp_path / "model")
    text = fitting(AutoTokenizer.from_pretrained(folder), "paper")
    (folder / "chat_template.jinja").write_text(text or "")
    return folder


def expected(question: str, input: str = "", tokens: int = 20) -> str:
    loaded = load(ModelSpec(source=str(model_path())))
    prompts = encode_prompts([Example(question, input, "")], loaded.tokenizer, 1000)
    return generate(loaded.model, loaded.tokenizer, prompts, tokens, 1)[0]


def test_one_question_is_answered_as_training_asked(ferret_in_process: Ferret, model: Path) -> None:
    done = ferret_in_process("chat", model, QUESTION, "--input", INPUT, "--max-tokens", "20", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "question": QUESTION,
        "input": INPUT,
        "answer": expected(QUESTION, INPUT),
        "checkpoint": str(model),
    }
    plain = ferret_in_process("chat", "model", QUESTION, "--max-tokens", "20")
    assert plain.stdout == expected(QUESTION) + "\n"


def test_questions_are_asked_one_by_one(
    ferret_in_process: Ferret, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"\n{QUESTION}\n{'long ' * 2000}\nName a colour.\n"))
    done = ferret_in_process("chat", model, "--max-tokens", "20")
    assert done.returncode == 0, done.stderr
    answers = done.stdout.replace("> ", "").splitlines()
    assert answers[:2] == [expected(QUESTION), expected("Name a colour.")]
    assert "shorten it" in done.stderr


def test_ctrl_c_ends_the_answer_and_not_the_questions(
    ferret_in_process: Ferret, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([KeyboardInterrupt(), "second"])

    def answer(*given: Any) -> GeneratedAnswer:
        following = next(answers)
        if isinstance(following, KeyboardInterrupt):
            raise following
        given[-1](following)
        return GeneratedAnswer(following, 1, "model")

    monkeypatch.setattr(streaming_generation, "answer", answer)
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    done = ferret_in_process("chat", model)
    assert done.returncode == 0
    assert done.stdout.split() == [">", ">", "second", ">"]


def test_what_cannot_be_meant_is_refused(ferret_in_process: Ferret, model: Path, tmp_path: Path) -> None:
    for words, said in (
        ((model, "Sing.", "--round", "1"), "holds one round"),
        ((model, "--json"), "give the QUESTION"),
        ((tmp_path, "Sing."), "config.json"),
    ):
        done = ferret_in_process("chat", *words)
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


class Exporting:
    """A run whose checkpoints of rounds 2 and 4 are a file each."""

    id = "exp_0123456789abcdef"

    def __init__(self) -> None:
        self.exported: list[int] = []

    def checkpoint(self, round: int | None) -> list[Artifact]:
        if round not in (None, 2, 4):
            raise FerretError("artifact.not_found", "there are checkpoints of rounds 2, 4")
        return [Artifact.model_validate(documents.artifact(round=round or 4))]

    def export(self, folder: Path, round: int) -> Path:
        folder.mkdir()
        self.exported.append(round)
        return folder


def test_an_experiments_round_is_exported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_HOME", str(tmp_path / "home"))
    run: Any = Exporting()
    folders = [chat._cached(run, round).name for round in (None, 4, 2, None)]
    assert folders == [f"{run.id}-4", f"{run.id}-4", f"{run.id}-2", f"{run.id}-4"]
    assert run.exported == [4, 2]
