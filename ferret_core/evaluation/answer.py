"""Answers to single questions by an exported model, told word by word while they come."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ferret_core.datasets._chat import one_message, rendered_ids
from ferret_core.datasets._chat_template import is_of_training, messages_of
from ferret_core.datasets._encoding import end_of_text, pad_id
from ferret_core.evaluation._soft_prompt import generation_inputs, transformers_model
from ferret_core.evaluation.generate import plain_settings
from ferret_core.models.inference import inference
from ferret_core.models.load import LoadedModel, context_of, load
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec
from ferret_core.training.loss import device_of

ADAPTERS = "adapter_config.json"


def load_exported(folder: Path) -> LoadedModel:
    """The model of an exported folder; with adapters, on the base model that they name.

    Raises ``model.invalid`` where there is none, or no chat template to ask it by.
    """
    loaded = _load_adapters(folder) if (folder / ADAPTERS).is_file() else _load(folder)
    if loaded.tokenizer.chat_template is None:
        message = "has no chat template to ask it by: its README.md, if it has one, says why"
        raise FerretError.of_field("model.invalid", "folder", str(folder), message)
    loaded.model.to("cuda" if torch.cuda.is_available() else "cpu")
    return loaded


def _load(folder: Path) -> LoadedModel:
    return load(ModelSpec(source=str(folder.resolve())), anywhere=True)


def _load_adapters(folder: Path) -> LoadedModel:
    """Adapters in PEFT's layout on their base model; ``model.invalid`` where that is not on this machine."""
    from peft import PeftConfig, PeftModel
    from transformers import AutoTokenizer

    config: Any = PeftConfig.from_pretrained(str(folder))
    base = load(ModelSpec(source=config.base_model_name_or_path, revision=config.revision), anywhere=True)
    with warnings.catch_warnings():
        # PEFT 0.21 asks transformers 5 under a name that goes away in 6; the answer is right.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        model: Any = PeftModel.from_pretrained(base.model, str(folder))  # pyright: ignore[reportArgumentType]
    return LoadedModel(model.eval(), AutoTokenizer.from_pretrained(str(folder), local_files_only=True))


def question_ids(tokenizer: Any, instruction: str, input: str = "") -> list[int]:
    """The question's tokens by the model's chat template, in which it is put as in training.

    Raises ``request.invalid`` for a question that the template does not take.
    """
    from jinja2 import TemplateError

    ask = messages_of if is_of_training(str(tokenizer.chat_template)) else one_message
    try:
        return rendered_ids(ask(instruction, input), tokenizer)
    except (TemplateError, ValueError, TypeError) as error:
        message = f"the model's chat template does not take it ({error}); ask in other words"
        raise FerretError.of_field("request.invalid", "question", instruction, message) from error


def answer(
    model: nn.Module,
    tokenizer: Any,
    prompt: list[int],
    max_tokens: int,
    on_text: Callable[[str], None] = lambda text: None,
) -> str:
    """The most probable answer, at most ``max_tokens`` long and as long as the context has room.

    ``on_text`` is told its parts as they come, which joined are the answer. Raises ``request.invalid`` for a question
    that fills the context.
    """
    from transformers import GenerationConfig

    room = context_of(model) - len(prompt)
    if room < 1:
        message = f"takes {len(prompt)} tokens, the model's context is {context_of(model)}: shorten it"
        raise FerretError.of_field("request.invalid", "question", len(prompt), message)
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=min(max_tokens, room),
        pad_token_id=pad_id(tokenizer),
        eos_token_id=end_of_text(tokenizer),
    )
    ids, heard = torch.tensor([prompt], device=device_of(model)), Heard(tokenizer, on_text)
    given = generation_inputs(model, ids, torch.ones_like(ids))
    generating = transformers_model(model)
    with inference(model), plain_settings(generating):
        generating.generate(**given, generation_config=settings, streamer=heard)
    return heard.text


class Heard:
    """Told the tokens of a generation, first those of the prompt; tells their text as soon as it cannot change.

    The end of a text may change with the next token, where several make one character.
    """

    def __init__(self, tokenizer: Any, on_text: Callable[[str], None]) -> None:
        self._tokenizer, self._on_text = tokenizer, on_text
        self._ids: list[int] = []
        self._prompted = False
        self.text = ""

    def put(self, value: torch.Tensor) -> None:
        if not self._prompted:
            self._prompted = True
            return
        self._ids += value.flatten().tolist()
        self._tell(self._decoded().rstrip("\ufffd"))

    def end(self) -> None:
        self._tell(self._decoded())

    def _decoded(self) -> str:
        return str(self._tokenizer.decode(self._ids, skip_special_tokens=True)).lstrip()

    def _tell(self, text: str) -> None:
        text = text.rstrip()  # blanks are told with what follows them
        if len(text) > len(self.text):
            self._on_text(text[len(self.text) :])
            self.text = text
