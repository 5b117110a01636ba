"""The frontier's main rows on a larger model than a processor could train: made on the spot, then tuned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import final

from ferret_bench.base import Table
from ferret_bench.gpu.part import Done, Found, Setup, Step
from ferret_bench.gpu.reruns import Asked, rerun, table
from ferret_bench.reproduce.pretrain import instructions, pretrain
from ferret_bench.reproduce.reruns.studies import study
from ferret_core import sample
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import PluginChoice

MODEL = "60M"
MINUTES, BATCH = 2.0, 64
ROWS = ("fedavg", "ferret", "topk", "sparseloco", "fedkseed", "fedit")
TOY_ROWS = ("ferret-7400",)


@final
class Part:
    title = "The frontier on a larger model"
    lead = (
        f"A LLaMA of {MODEL} parameters, trained {MINUTES:g} minutes on Natural Instructions, CodeAlpaca and Dolly, "
        "then tuned on GSM8K by `ferret dev paper figure frontier`: one seed, rates as shipped, no search."
    )
    seconds = 480.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        rows = TOY_ROWS if setup.miniature else ROWS
        return {"base": _base, **{f"{_name(setup)}, {row}": partial(_run, row) for row in rows}}

    def tables(self, done: Done) -> Sequence[Table]:
        base = done.get("base", {})
        runs = {step: found for step, found in done.items() if step != "base"}
        columns = ["parameters", "tokens", "loss"]
        trained = (
            [Table("The base model:", columns, [[base.get(name) for name in columns]])] if "tokens" in base else []
        )
        return [*trained, *([table("After the last round:", runs)] if runs else [])]


def _name(setup: Setup) -> str:
    return "toy" if setup.miniature else MODEL


def _base(setup: Setup) -> Found:
    """Trains the model to be tuned."""
    folder = _folder(setup)
    folder.mkdir(parents=True, exist_ok=True)
    if setup.miniature:
        return pretrain("toy", [_tasks(setup)], sample.model_path(), folder, 1.0, 4)
    if setup.official is None:
        raise FerretError.of_field(
            "request.invalid", "--data", str(setup.data), "needs a folder with the official files"
        )
    return pretrain(MODEL, instructions(setup.official), sample.model_path(), folder, 60 * MINUTES, BATCH)


def _tasks(setup: Setup) -> PluginChoice:
    folder = setup.toy_data()
    return PluginChoice.model_validate(
        {"name": "jsonl", **{part: str(folder / f"{part}.jsonl") for part in ("train", "test")}}
    )


def _run(row: str, setup: Setup) -> Found:
    frontier = study("figure", "frontier")
    given = ("algorithm.local.precision=bfloat16",) if row != "fedkseed" else ()
    if setup.miniature:
        small = ("rounds=1", "algorithm.local.steps=2", "evaluation.examples=4", "evaluation.generate_examples=0")
        asked = Asked(_folder(setup), setup.toy_data(), "jsonl", row, small)
    else:
        small = ("evaluation.examples=200", "evaluation.generate_examples=0")
        asked = Asked(_folder(setup), setup.official or setup.toy_data(), "gsm8k", row, (*given, *small))
    return rerun(frontier, asked, frontier.quantities)


def _folder(setup: Setup) -> Path:
    return setup.scratch / f"pretrained-{_name(setup)}"
