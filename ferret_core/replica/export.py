"""What turns a downloaded checkpoint into a model for others: a chat template, and a card that says what it is.

Both are written when a checkpoint is exported, never into the stored one, and are files of their own: the checkpoint's
and the manifest ``ferret.json`` stay as they are, but for a chat template that training did not use, which is renamed.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from ferret_core.protocol.spec import Template, Worded
from ferret_core.replica.model_card import Facts, Prompting, card

log = logging.getLogger(__name__)

CARD = "README.md"
CHAT_TEMPLATE = "chat_template.jinja"
"""Where transformers looks for it, before ``tokenizer_config.json``."""
BASE_CHAT_TEMPLATE = "base_chat_template.jinja"
"""The base model's own, where training asked in other words: the tuned model would answer it worse."""
ADDED = (CARD, CHAT_TEMPLATE, BASE_CHAT_TEMPLATE)
ADAPTERS = "adapter_config.json"


def complete(folder: Path, facts: Facts) -> None:
    """Writes chat template and card into the folder of a checkpoint."""
    template = facts.spec.prompt.template
    text = card(facts, _prompting(folder, template), _example(template), adapters=(folder / ADAPTERS).is_file())
    (folder / CARD).write_text(text, encoding="utf-8")


def _prompting(folder: Path, template: Template) -> Prompting:
    """Leaves the chat template of training in the folder, and says whose it is."""
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


def _example(template: Template) -> str:
    if template == "chat":
        return ""
    from ferret_core.datasets._base import Example
    from ferret_core.datasets._prompt import prompt_of

    return prompt_of(Example("Say the opposite. a slow white swan", "", ""), template)


def _of_training(folder: Path, template: Worded) -> str | None:
    """The chat template that gives the tokens of training by the folder's tokenizer; None where there is none, where
    transformers is not installed, and for files that make no tokenizer: the model itself may be all right."""
    try:
        from transformers import AutoTokenizer

        from ferret_core.datasets._chat_template import fitting

        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        return fitting(tokenizer, template)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # the panics of the library's Rust parts are no Exception
        log.warning("%s gets no chat template: its tokenizer cannot be loaded (%s)", folder, type(error).__name__)
        return None
