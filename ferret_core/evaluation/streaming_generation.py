"""Streamed answers of an exported model to single questions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat import chat_ids, rendered_ids
from ferret_core.datasets.tokenization.chat_template import fitting, messages_of
from ferret_core.datasets.tokenization.prompt_jinja import wording_of
from ferret_core.datasets.tokenization.tokenize import pad_id, resolve_template
from ferret_core.evaluation.generate import ends_of_answer, generation_inputs, plain_settings, transformers_model
from ferret_core.models.load import LoadedModel, context_of, load
from ferret_core.models.parameters import inference
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec, Template
from ferret_core.system.device import chosen_device
from ferret_core.training.loss import device_of

ADAPTERS = "adapter_config.json"


class SamplingOptions(NamedTuple):
    """Sampling of tokens: the most probable one at ``temperature`` 0, else drawn by ``seed``."""

    temperature: float = 0.0
    seed: int = 0


class GeneratedAnswer(NamedTuple):
    """An answer, its number of ``tokens``, and the reason for its end: the model, the length, or a full context."""

    text: str
    tokens: int
    ended: Literal["model", "length", "context"]


GREEDY = SamplingOptions()


def load_exported(folder: Path) -> LoadedModel:
    """Loads the model in an exported folder; adapters are put on the base model that they name.

    Raises ``model.invalid`` if it is missing or has no chat template.
    """
    loaded = _load_adapters(folder) if (folder / ADAPTERS).is_file() else _load(folder)
    if loaded.tokenizer.chat_template is None:
        message = "has no chat template for questions: its README.md, if it has one, says why"
        raise FerretError.of_field("model.invalid", "folder", str(folder), message)
    loaded.model.to(chosen_device())
    return loaded


def load_checkpoint(folder: Path, base: Path, template: Template) -> LoadedModel:
    """Loads the model of a stored checkpoint on the CPU, with the chat template of its export.

    ``base`` is the checkpoint of the base model, for adapters. Raises ``model.invalid`` for files that are not a valid
    model, and if no chat template gives the prompt of training.
    """
    loaded = _with_adapters(folder, _load(base)) if (folder / ADAPTERS).is_file() else _load(folder)
    if (rendered := resolve_template(template, loaded.tokenizer)) != "chat":
        loaded.tokenizer.chat_template = fitting(loaded.tokenizer, rendered)
    if loaded.tokenizer.chat_template is None:
        message = "no chat template gives its tokenizer the prompt of training: use the exported model in your own code"
        raise FerretError.of_field("model.invalid", "prompt.template", template, message)
    return loaded


def _load(folder: Path) -> LoadedModel:
    return load(ModelSpec(source=str(folder.resolve())), anywhere=True, as_stored=True)


def _load_adapters(folder: Path) -> LoadedModel:
    """Loads PEFT's adapters on the base model that they name; raises ``model.invalid`` if it is not available."""
    from peft import PeftConfig

    config: Any = PeftConfig.from_pretrained(str(folder))
    base = load(ModelSpec(source=config.base_model_name_or_path, revision=config.revision), anywhere=True)
    return _with_adapters(folder, base)


def _with_adapters(folder: Path, base: LoadedModel) -> LoadedModel:
    from peft import PeftModel
    from transformers import AutoTokenizer

    with warnings.catch_warnings():
        # PEFT 0.21 calls transformers 5 by a name that version 6 removes; the result is correct.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing` is deprecated", FutureWarning)
        model: Any = PeftModel.from_pretrained(base.model, str(folder))
    return LoadedModel(model.eval(), AutoTokenizer.from_pretrained(str(folder), local_files_only=True))


def question_ids(tokenizer: Any, instruction: str, input: str = "") -> list[int]:
    """Returns the question's tokens by the model's chat template, in the prompt of training.

    Raises ``spec.invalid`` for a chat template that does not accept a single question.
    """
    template = str(tokenizer.chat_template)
    if wording_of(template):
        return rendered_ids(messages_of(instruction, input), tokenizer, template)
    return chat_ids([Example(instruction, input, "")], tokenizer)[0]


def answer(
    model: nn.Module,
    tokenizer: Any,
    prompt: list[int],
    max_tokens: int,
    on_text: Callable[[str], None] = lambda text: None,
    *,
    sampling: SamplingOptions = GREEDY,
    on_token: Callable[[], None] = lambda: None,
) -> GeneratedAnswer:
    """Generates an answer, by default the most probable one, limited by ``max_tokens`` and the context.

    ``on_text`` receives its parts as they are generated; joined they are the answer. ``on_token`` is called after each
    token. An exception in either ends the work. Raises ``request.invalid`` for a question that fills the context.
    """
    room = context_of(model) - len(prompt)
    if room < 1:
        message = f"takes {len(prompt)} tokens, the model's context is {context_of(model)}: shorten it"
        raise FerretError.of_field("request.invalid", "question", len(prompt), message)
    most, ends = min(max_tokens, room), ends_of_answer(model, tokenizer, "auto")
    device = device_of(model)
    ids, heard = torch.tensor([prompt], device=device), StopWatcher(tokenizer, on_text, on_token)
    given = generation_inputs(model, ids, torch.ones_like(ids))
    generating = transformers_model(model)
    with inference(model), plain_settings(generating), torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(sampling.seed)
        settings = _settings(sampling, max_new_tokens=most, pad_token_id=pad_id(tokenizer), eos_token_id=ends or None)
        generating.generate(**given, generation_config=settings, streamer=heard)
    ended = "model" if heard.ids and heard.ids[-1] in ends else "length" if most == max_tokens else "context"
    return GeneratedAnswer(heard.text, len(heard.ids), ended)


def _settings(sampling: SamplingOptions, **settings: Any) -> Any:
    from transformers import GenerationConfig

    if sampling.temperature:
        settings |= {"do_sample": True, "temperature": sampling.temperature, "top_k": 0, "top_p": 1.0}
    return GenerationConfig(**{"do_sample": False, **settings})


class StopWatcher:
    """Receives the tokens of a generation, first the prompt's, and passes on their text when it can no longer change.

    The end of a text may change with the next token, because several tokens can form one character.
    """

    def __init__(
        self, tokenizer: Any, on_text: Callable[[str], None], on_token: Callable[[], None] = lambda: None
    ) -> None:
        self._tokenizer, self._on_text, self._on_token = tokenizer, on_text, on_token
        self.ids: list[int] = []
        self._prompted = False
        self.text = ""

    def put(self, value: torch.Tensor) -> None:
        if not self._prompted:
            self._prompted = True
            return
        self.ids += value.flatten().tolist()
        self._tell(self._decoded().rstrip("\ufffd"))
        self._on_token()

    def end(self) -> None:
        self._tell(self._decoded())

    def _decoded(self) -> str:
        return str(self._tokenizer.decode(self.ids, skip_special_tokens=True)).lstrip()

    def _tell(self, text: str) -> None:
        text = text.rstrip()  # blanks are passed on with the text after them
        if len(text) > len(self.text):
            self._on_text(text[len(self.text) :])
            self.text = text
