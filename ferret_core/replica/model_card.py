"""The README.md of an exported model: its origin, its results, and instructions for use.

For the base model it contains the folder's name, for the dataset its name; their paths on the server stay private.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal, NamedTuple

from ferret_core.protocol.metrics import metric
from ferret_core.protocol.sanitize import shown
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, Rendered, is_folder

Prompting = Literal["training's", "model's own", "none"]
"""Origin of the folder's chat template: training, the base model (which training used too), or none, if this tokenizer
cannot produce the tokens of training."""

HOW: dict[Prompting, str] = {
    "training's": "The folder's chat template gives the very tokens of training (`prompt.template = {template}`). The "
    "user's message is the instruction; a system message before it is the input, where there is one.",
    "model's own": "It was trained by the base model's own chat template, which is in the folder. Instruction and "
    "input are one message, with an empty line between them.",
    "none": "**The folder has no chat template**: no template gives the tokens of training by this tokenizer, or it "
    "was exported where transformers is not installed. Training put this text before every answer "
    "(`prompt.template = {template}`):",
}
ASKING = """\
messages = [{"role": "user", "content": "Say the opposite. a slow white swan"}]
tokens = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")"""
SNIPPET = """\
from {library} import {loader}
from transformers import AutoTokenizer

folder = "."  # where this file lies
model = {loader}.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
{asking}
answer = model.generate(**tokens, max_new_tokens=50, do_sample=False)
print(tokenizer.decode(answer[0, tokens["input_ids"].shape[1] :], skip_special_tokens=True))"""
METRICS = ("eval_loss", "rouge_l", "exact_match")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|])")


class Figures(NamedTuple):
    """A metric's value for the base model, for the last round and for the best."""

    base: float | None
    last: float | None
    best: float | None


class Facts(NamedTuple):
    """Contents of a card. ``round`` and ``digest`` are the model's; ``metrics`` are of all rounds."""

    experiment: str
    spec: ExperimentSpec
    round: int
    rounds: int
    participants: int
    digest: str | None
    base_digest: str | None
    metrics: Mapping[str, Figures]


def card(facts: Facts, template: Rendered, prompting: Prompting, prompt: str, *, adapters: bool) -> str:
    """Returns the card in Markdown.

    ``template``: training's; ``prompt``: training's text for an instruction; ``adapters``: the base model's weights are
    not in the folder.
    """
    parts = [
        _front(facts.spec.model),
        f"# {_plain(facts.spec.name)}",
        _origin(facts, adapters),
        f"## How well it does\n\n{_results(facts.metrics)}",
        f"## How to ask it\n\n{_asking(template, prompting, prompt, adapters)}",
    ]
    return "\n\n".join(parts) + "\n"


def model_name(model: ModelSpec) -> str:
    """Returns the model's name on the hub with its revision, or the last part of its folder's path."""
    if is_folder(model.source):
        return PurePath(model.source).name or "a folder"
    return f"{model.source} at {model.revision}" if model.revision else model.source


def _front(model: ModelSpec) -> str:
    """Returns the metadata that the Hugging Face hub reads."""
    base = [] if is_folder(model.source) else [f"base_model: {json.dumps(model.source)}"]
    return "\n".join(["---", *base, "library_name: transformers", "tags: [ferret, federated-learning]", "---"])


def _origin(facts: Facts, adapters: bool) -> str:
    spec, part = facts.spec, "The adapters" if adapters else "All weights"
    rows = {
        "base model": _plain(model_name(spec.model)),
        "dataset": _plain(spec.dataset.name),
        "algorithm": _plain(spec.algorithm.name),
        "round": f"{facts.round} of {facts.rounds}",
        "participants": str(facts.participants),
        "experiment": f"`{facts.experiment}`",
        "digest of this model": f"`{facts.digest}`" if facts.digest else "–",
        "digest of the base model": f"`{facts.base_digest}`" if facts.base_digest else "–",
    }
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])
    whose = "over data that stayed with their owners" if spec.participants.edge else "with simulated participants"
    return f"{part} of a model tuned by Ferret {whose}.\n\n{table}"


def _results(metrics: Mapping[str, Figures]) -> str:
    known = {name: metrics[name] for name in METRICS if name in metrics}
    if not known:
        return "It was not evaluated."
    rows = [f"| {_label(name)} | {' | '.join(map(_number, figures))} |" for name, figures in known.items()]
    return "\n".join(["| on held-out examples | base model | last round | best round |", "|---|---:|---:|---:|", *rows])


def _asking(template: Rendered, prompting: Prompting, prompt: str, adapters: bool) -> str:
    library, loader = ("peft", "AutoPeftModelForCausalLM") if adapters else ("transformers", "AutoModelForCausalLM")
    text = HOW[prompting].replace("{template}", json.dumps(template))
    if prompting == "none":
        return f"{text}\n\n```\n{prompt}\n```"
    snippet = SNIPPET.replace("{library}", library).replace("{loader}", loader).replace("{asking}", ASKING)
    return f"{text}\n\n```python\n{snippet}\n```\n\nOr in a terminal: `ferret chat FOLDER`."


def _label(name: str) -> str:
    entry = metric(name)
    return f"{entry.label}, {entry.unit}" if entry else name


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _plain(text: str) -> str:
    """Escapes user text in Markdown."""
    return _MARKUP.sub(r"\\\1", shown(text))
