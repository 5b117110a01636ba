"""The paper's tables of cost and memory by whole rounds, on models of random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import final

from ferret_bench.base import Table
from ferret_bench.gpu.part import Done, Found, Setup, Step
from ferret_bench.gpu.reruns import Asked, rerun, table
from ferret_bench.reproduce.reruns.quantity import PEAK_DEVICE, PEAK_MEMORY
from ferret_bench.reproduce.reruns.shapes import model_of
from ferret_bench.reproduce.reruns.studies import study

LEAN = ("algorithm.local.activation_checkpointing=true", "algorithm.local.optimizer_in_backward=true")
HALF = "algorithm.local.precision=bfloat16"
ALWAYS = ("model.dtype=bfloat16", "participants.simulated=2")
UNGUARDED = "algorithm.refuse_noisy_rounds=false"
"""Random weights mean nothing, so noise cannot spoil them."""
FIRST_ORDER = (HALF, UNGUARDED)
PURE = ("algorithm.local.precision=pure_bfloat16", UNGUARDED, *LEAN)
ROWS: Mapping[str, tuple[str, str, Sequence[str]]] = {
    "llama2-7b, ferret": ("llama2-7b", "ferret", (*FIRST_ORDER, *LEAN)),
    "llama2-7b in bf16 alone, ferret": ("llama2-7b", "ferret", PURE),
    "llama-3b, ferret": ("llama-3b", "ferret", FIRST_ORDER),
    "llama-3b, ferret_paper": ("llama-3b", "ferret_paper", FIRST_ORDER),
    "llama-3b, fedavg": ("llama-3b", "fedavg", (HALF,)),
    "llama2-13b in bf16 alone, ferret": ("llama2-13b", "ferret", PURE),
    "llama-3b, fedkseed": ("llama-3b", "fedkseed", ()),
    "llama-3b, fedzo": ("llama-3b", "fedzo", ()),
    "llama-3b, fedmezo": ("llama-3b", "fedmezo", ()),
    "llama2-7b, fedkseed": ("llama2-7b", "fedkseed", ()),
}
"""Shape, row and its settings; the slowest comes last. FedAvg at 7B would send 28 GB, which a host of 128 GB holds four
times at most; at 13B an fp32 copy of the weights leaves no room on 80 GB.
"""
TOYS: Mapping[str, tuple[str, str, Sequence[str]]] = {"64/1, ferret": ("64/1", "ferret", (UNGUARDED,))}


@final
class Part:
    title = "Cost and memory of whole rounds"
    lead = (
        "`ferret dev paper table cost`, two simulated participants and two rounds, figures of the second, with the "
        "peaks of table 6 next to them. The zeroth-order rows compute in fp32, the others' products in bf16."
    )
    seconds = 480.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        rows = TOYS if setup.miniature else ROWS
        return {name: partial(_run, *row) for name, row in rows.items()}

    def tables(self, done: Done) -> Sequence[Table]:
        return [table("", done)]


def _run(shape: str, row: str, given: Sequence[str], setup: Setup) -> Found:
    cost = study("table", "cost")
    short = ("rounds=1", "algorithm.local.steps=2") if setup.miniature else ("rounds=2",)
    model = model_of(shape, setup.scratch)
    asked = Asked(model, setup.toy_data(), "jsonl", row, (*ALWAYS, *given, *short))
    return rerun(cost, asked, (*cost.quantities, PEAK_DEVICE, PEAK_MEMORY))
