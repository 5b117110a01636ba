"""Completion of an exported checkpoint for use by others: a chat template, and a model card.

Both are separate files, written at the export and never into the stored checkpoint. The checkpoint's files and the
manifest ``ferret.json`` stay unchanged, except for a chat template that training did not use, which is renamed.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ferret_core.protocol.spec import Rendered, Template, Worded
from ferret_core.replica.model_card import Facts, Prompting, card

log = logging.getLogger(__name__)

CARD = "README.md"
CHAT_TEMPLATE = "chat_template.jinja"
"""File that transformers reads before ``tokenizer_config.json``."""
BASE_CHAT_TEMPLATE = "base_chat_template.jinja"
"""The base model's own chat template, if training used another: the tuned model would answer it worse."""
ADDED = (CARD, CHAT_TEMPLATE, BASE_CHAT_TEMPLATE)
ADAPTERS = "adapter_config.json"


def complete(folder: Path, facts: Facts) -> None:
    """Writes chat template and model card into the folder of a checkpoint."""
    template = _rendered(folder, facts.spec.prompt.template)
    text = card(
        facts, template, _prompting(folder, template), _example(template), adapters=(folder / ADAPTERS).is_file()
    )
    (folder / CARD).write_text(text, encoding="utf-8")


def _rendered(folder: Path, template: Template) -> Rendered:
    """Returns the template of training; ``auto``, in a specification that no model has resolved, by the tokenizer."""
    if template != "auto":
        return template
    with _invalid_tokenizer_logged(folder):
        from ferret_core.datasets.tokenization.tokenize import resolve_template

        return resolve_template(template, _tokenizer(folder))
    return "paper"


def _prompting(folder: Path, template: Rendered) -> Prompting:
    """Puts the chat template of training into the folder, and returns its origin."""
    if template == "chat":
        return "model's own"
    text = _of_training(folder, template)
    own = folder / CHAT_TEMPLATE
    if own.is_file():
        own.replace(folder / BASE_CHAT_TEMPLATE)
    if text is None:
        return "none"
    own.write_text(text, encoding="utf-8")
    return "training's"


def _example(template: Rendered) -> str:
    if template == "chat":
        return ""
    from ferret_core.datasets.base import Example
    from ferret_core.datasets.tokenization.prompt import prompt_of

    return prompt_of(Example("Say the opposite. a slow white swan", "", ""), template)


def _of_training(folder: Path, template: Worded) -> str | None:
    """Returns the chat template that gives the tokens of training with the folder's tokenizer.

    None if no template does, if transformers is not installed, or if the files contain no valid tokenizer: the model
    itself may be valid.
    """
    with _invalid_tokenizer_logged(folder):
        from ferret_core.datasets.tokenization.chat_template import fitting

        return fitting(_tokenizer(folder), template)
    return None


def _tokenizer(folder: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


@contextmanager
def _invalid_tokenizer_logged(folder: Path) -> Generator[None]:
    """Logs any error of the loading library in the ``with`` block, which then ends."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # panics of the library's Rust parts are not subclasses of Exception
        log.warning("%s gets no chat template: its tokenizer cannot be loaded (%s)", folder, type(error).__name__)
