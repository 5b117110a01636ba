"""What an exported checkpoint has beside its files: a chat template and a card."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.export import complete
from ferret_core.replica.model_card import Facts, Figures, card
from tests.ferret_core import manifest_reader
from tests.ferret_core.replicas import SpecFactory, replica_of

OWN = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
EXAMPLE = Example("Say the opposite. a slow white swan", "", "")


def facts(spec: ExperimentSpec) -> Facts:
    figures = {"eval_loss": Figures(2.5, 1.25, 1.2), "train_loss": Figures(None, 1.0, 1.0)}
    return Facts("exp_0000000000007e57", spec, 2, 3, 5, "d" * 64, "b" * 64, figures)


@pytest.fixture
def exported(toy_spec: SpecFactory, tmp_path: Path) -> Callable[..., Path]:
    """``exported(prompt=…)``: a checkpoint of the base model, completed; ``own``: its chat template before."""

    def make(algorithm: str = "ferret", own: str | None = None, **changes: object) -> Path:
        spec = toy_spec(algorithm, **changes)
        replica, folder = replica_of(spec), tmp_path / "model"
        folder.mkdir()
        if own is not None:
            replica.tokenizer.chat_template = own
        checkpoint.write(replica, "exp_0000000000007e57", folder)
        complete(folder, facts(spec))
        return folder

    return make


@pytest.mark.parametrize("template", ["paper", "alpaca", "dolly"])
def test_the_tokenizer_asks_in_trainings_words(exported: Callable[..., Path], template: str) -> None:
    folder = exported(prompt={"template": template})
    tokenizer = AutoTokenizer.from_pretrained(folder)
    messages = [{"role": "user", "content": EXAMPLE.instruction}]
    asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    assert [asked] == encode_prompts([EXAMPLE], tokenizer, 1000, template)
    manifest_reader.checked(folder)


def test_the_card_says_whose_the_data_were(toy_spec: SpecFactory) -> None:
    simulated, edge = (
        card(facts(toy_spec(participants=wanted)), "paper", "none", "", adapters=False)
        for wanted in ({"simulated": 2}, {"simulated": 0, "edge": 2})
    )
    assert "tuned by Ferret with simulated participants." in simulated
    assert "tuned by Ferret over data that stayed with their owners." in edge


def test_the_card_says_what_the_model_is_and_not_where_things_lie(
    exported: Callable[..., Path], toy_data: tuple[Path, Path], tiny_model_dir: Path
) -> None:
    text = (exported(name="Two *wards* | one <model>") / "README.md").read_text()
    for told in (
        r"# Two \*wards\* \| one \<model\>",
        f"| base model | {tiny_model_dir.name} |",
        "| dataset | jsonl |",
        "| algorithm | ferret |",
        "| round | 2 of 3 |",
        "| participants | 5 |",
        f"| digest of this model | `{'d' * 64}` |",
        "| 2.5 | 1.25 | 1.2 |",
        '`prompt.template = "paper"`',
    ):
        assert told in text
    assert str(tiny_model_dir) not in text
    assert str(toy_data[0].parent) not in text


@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # what peft does
@pytest.mark.filterwarnings("ignore:Position ids are not supported:UserWarning")
@pytest.mark.parametrize("algorithm", ["ferret", "fedit", "fedprompt"])
def test_the_cards_snippet_runs(exported: Callable[..., Path], algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = exported(algorithm, options={"targets": ["q_proj"]} if algorithm == "fedit" else None)
    (snippet,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(snippet, names)
    (expected,) = encode_prompts([EXAMPLE], AutoTokenizer.from_pretrained(folder), 1000)
    assert names["tokens"]["input_ids"][0].tolist() == expected


def test_a_chat_template_that_training_did_not_use_is_kept_aside(exported: Callable[..., Path]) -> None:
    folder = exported(own=OWN, prompt={"template": "paper"})
    assert (folder / "base_chat_template.jinja").read_text() == OWN
    assert "### Response:" in AutoTokenizer.from_pretrained(folder).chat_template


@pytest.mark.parametrize("template", ["chat", "auto"])
def test_one_that_training_used_stays(exported: Callable[..., Path], template: str) -> None:
    folder = exported(own=OWN, prompt={"template": template})
    assert AutoTokenizer.from_pretrained(folder).chat_template == OWN
    assert "base model's own chat template" in (folder / "README.md").read_text()


def test_without_a_tokenizer_the_card_has_the_text(toy_spec: SpecFactory, tmp_path: Path) -> None:
    complete(tmp_path, facts(toy_spec()))
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    text = (tmp_path / "README.md").read_text()
    assert "has no chat template" in text
    assert "### Instruction: Say the opposite. a slow white swan\n\n### Response:" in text
