"""Leakage: the texts and tokens that contributions, their sums and final models reveal.

An attacker with the model, the bytes and a few public texts of the kind guesses which texts a site trained on, and
which tokens their answers have (:mod:`ferret_bench._leakage.attack`). Each guess is compared with the same one without
the bytes. Sites have different texts of the dataset, and pass over them once in round 1.

The document holds ``machine``, ``model``, ``parameters``, ``dataset``, ``max_tokens``, ``local`` (the optimizer),
``sizes``, ``texts_per_step``, the number of ``draws`` of texts, and

    rounds  for each way to send, number of local steps and number of sites in the sum that is read: ``texts`` and
            ``tokens``, with ``auc`` and ``tpr`` (found at 1 % false alarms), each with a 95 % interval of a bootstrap
            over texts and sites. Tokens are compared with tokens of the same frequency in public texts
    priors  the same figures without a contribution, by the loss of the base model and by the frequency of a token
    final   for each way to send: ``texts`` and ``canaries`` (random tokens) by the final model, ``prior`` by the base
            model, and ``epsilon``: what the canaries prove against smaller ε, and ``ceiling``: if each guess was right
    audits  record-level privacy with each target ε, and the same without its noise: canaries by the ``sums`` of all
            rounds and by the ``final`` model, and ``audited``: what the sums prove against smaller ε
    skipped rows of ``final`` without a measurement, for lack of time

A large model has fewer rows, one local step, and neither final models nor audits: they would take days on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np

from ferret_bench import base
from ferret_bench._leakage import attack, final_model, rounds, single_round
from ferret_bench._leakage.audit import AuditSizes, audit
from ferret_bench._leakage.power import Scores, as_json, audited_epsilon, power
from ferret_bench._leakage.rounds import BATCH, Deal, Row
from ferret_bench._leakage.single_round import Draw
from ferret_bench.base import Asked, Document, Say, Table
from ferret_cli import demo
from ferret_core.datasets.tokenization.tokenize import longest
from ferret_core.models.load import LoadedModel, context_of, load
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec

LARGE = 50_000_000
"""Weights of a large model."""
FINAL = 8192
"""Bytes of Ferret's rows of final models."""
ROUND_SHARE = 0.6
"""The part of ``max_seconds`` for single rounds, if it is enough for one draw."""


class Sizes(NamedTuple):
    """Numbers of texts, sites, local steps, sums, draws and rounds; bytes of a contribution (``budgets``). ``members``
    sites train the final models, and each of the ``epsilons`` is audited."""

    public: int = 64
    outside: int = 200
    sites: int = 10
    steps: Sequence[int] = (1, 10)
    sums: Sequence[int] = (3, 10)
    budgets: Sequence[int] = (512, 8192, 65_536, 250_000)
    draws: int = 3
    members: int = 5
    candidates: int = 200
    rounds: int = 12
    audit: AuditSizes = AuditSizes()
    epsilons: Sequence[float] = (3.0, 8.0)


FEWER = Sizes(outside=100, steps=(1,), budgets=(8192,), draws=1, candidates=0, epsilons=())
"""For large models."""
QUICK = Sizes(
    public=8,
    outside=12,
    sites=3,
    steps=(1,),
    sums=(3,),
    draws=1,
    members=3,
    candidates=16,
    rounds=1,
    audit=AuditSizes(canaries=120, public=8, sites=3, rounds=1),
    epsilons=(60.0,),
)


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench leakage [FILE]``: measures the demo's model and texts by default."""

    def __init__(self, experiment: ExperimentSpec | None = None) -> None:
        self._experiment = experiment

    def measure(self, say: Say, asked: Asked) -> Document:
        with TemporaryDirectory(prefix="ferret-leakage-") as folder:
            spec = self._experiment or demo.experiment_spec(demo.write_data(Path(folder)))
            return {**_measured(spec, asked, say), "bounds": {}}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        found = [[*_named(row), *map(_shown, _figures(row))] for row in document["rounds"]]
        priors = [[*_named(row), *map(_shown, _figures(row))] for row in document["priors"]]
        kept = [
            [*_named(row), *(_shown(row[name]["auc"]) for name in KEPT), row["epsilon"]] for row in document["final"]
        ]
        audited = [
            [row["noise"], row["epsilon"], *(_shown(row[name]["auc"]) for name in AUDITED), row["audited"]]
            for row in document["audits"]
        ]
        return [
            Table("one round", [*NAMED, "texts", "texts at 1 %", "tokens"], found),
            Table("without a contribution", [*NAMED, "texts", "texts at 1 %", "tokens"], priors),
            Table("final model", [*NAMED, *KEPT, "epsilon"], kept),
            Table("protected records", ["noise", "epsilon", *AUDITED, "audited"], audited),
        ]


NAMED = ("algorithm", "bytes", "seeds", "steps", "sites", "masked")
KEPT = ("texts", "canaries", "prior")
AUDITED = ("sums", "final")


def rows_of(weights: int, sizes: Sizes) -> list[Row]:
    """Returns the ways to send an update of this number of ``weights``; a sum comes after its contributions."""
    found = [Row("fedavg", sites=sites) for sites in (1, *sizes.sums)]
    for budget in (budget for budget in sizes.budgets if 8 * budget < weights):
        found += [Row("ferret", budget, "own", sites) for sites in (1, *sizes.sums)]
        found.append(Row("ferret", budget, "shared"))
        found += [Row("ferret", budget, "shared", sites, masked=True) for sites in sizes.sums]
    return found


def final_rows(weights: int, sizes: Sizes) -> list[Row]:
    """Returns the ways to train a final model."""
    if not sizes.candidates:
        return []
    sites = sizes.members
    ferret = [Row("ferret", FINAL, "own", sites), Row("ferret", FINAL, "shared", sites, masked=True)]
    return [Row("fedavg", sites=sites), *(ferret if weights > 8 * FINAL else [])]


def _measured(spec: ExperimentSpec, asked: Asked, say: Say) -> Document:
    begin, loaded = perf_counter(), load(spec.model)
    weights = sum(parameter.numel() for parameter in trainable(loaded.model).values())
    sizes = QUICK if asked.quick else FEWER if weights > LARGE else Sizes()
    vocabulary = attack.vocabulary(loaded.model)
    rows = rows_of(weights, sizes)
    draws = dict[int, list[Draw]]()
    for seed in range(sizes.draws):
        for steps in sizes.steps:
            dealt = _deal(spec, loaded, sizes, steps, seed)
            draws.setdefault(steps, []).append(single_round.draw(spec, loaded, dealt, rows, steps, say))
        used = perf_counter() - begin
        say(f"draw {seed + 1} of {sizes.draws}: {used:.0f} s")
        if used * (seed + 2) / (seed + 1) > ROUND_SHARE * asked.max_seconds:
            break
    audits = [_audited(spec, sizes, epsilon, say, noise=True) for epsilon in sizes.epsilons]
    audits += [_audited(spec, sizes, epsilon, say, noise=False) for epsilon in sizes.epsilons[:1]]
    kept, wanted = list[dict[str, Any]](), final_rows(weights, sizes)
    for row in wanted:
        started = perf_counter()
        [texts] = rounds.deal(spec, loaded, _context(spec, loaded), [sizes.candidates], spec.seed)
        tested = final_model.train_and_test(spec, row, texts, vocabulary, sizes.rounds, say)
        kept.append(_described(row, None) | {"rounds": sizes.rounds} | _judged(tested, sizes))
        now = perf_counter()
        if now - begin + now - started > asked.max_seconds:
            break
    return {
        "model": Path(spec.model.source).name,
        "parameters": weights,
        "dataset": spec.dataset.name,
        "max_tokens": spec.prompt.max_tokens,
        "local": rounds.row_spec(spec, rows[0], 1, sizes.sites, 1).algorithm.model_dump(mode="json")["local"],
        "sizes": sizes._asdict() | {"audit": sizes.audit._asdict()},
        "texts_per_step": BATCH,
        "draws": len(next(iter(draws.values()))),
        "rounds": [row for steps, drawn in draws.items() for row in _rows(steps, drawn)],
        "priors": [row for steps, drawn in draws.items() for row in _priors(steps, drawn)],
        "audits": audits,
        "final": kept,
        "skipped": [_described(row, None) for row in wanted[len(kept) :]],
    }


def _deal(spec: ExperimentSpec, loaded: LoadedModel, sizes: Sizes, steps: int, seed: int) -> Deal:
    counts = [sizes.public, sizes.outside, *[steps * BATCH] * sizes.sites]
    public, outside, *sites = rounds.deal(spec, loaded, _context(spec, loaded), counts, spec.seed + seed)
    return Deal(public, outside, sites)


def _context(spec: ExperimentSpec, loaded: LoadedModel) -> int:
    return longest(spec.prompt, loaded.tokenizer, context_of(loaded.model))


def _rows(steps: int, draws: Sequence[Draw]) -> Iterator[dict[str, Any]]:
    for row in draws[0].rows:
        found = [drawn.rows[row] for drawn in draws]
        yield _described(row, steps) | _powers(found)


def _priors(steps: int, draws: Sequence[Draw]) -> Iterator[dict[str, Any]]:
    for sites in draws[0].prior:
        yield _described(Row("prior", sites=sites), steps) | _powers([drawn.prior[sites] for drawn in draws])


def _powers(found: Sequence[single_round.Found]) -> dict[str, Any]:
    return {
        "texts": as_json(power([each.texts for each in found])),
        "tokens": as_json(power([each.tokens for each in found])),
    }


def _described(row: Row, steps: int | None) -> dict[str, Any]:
    return row._asdict() | {"steps": steps}


def _audited(spec: ExperimentSpec, sizes: Sizes, epsilon: float, say: Say, *, noise: bool) -> dict[str, Any]:
    found = audit(spec, epsilon, sizes.audit, say, noise=noise)
    guesses = sizes.audit.canaries // 10
    return {
        "epsilon": epsilon,
        "noise": noise,
        "noise_multiplier": found.noise_multiplier,
        **{name: as_json(power([getattr(found, name)])) for name in AUDITED},
        "guesses": guesses,
        "audited": audited_epsilon(found.sums, guesses),
        "ceiling": audited_epsilon(_perfect(found.sums), guesses),
    }


def _perfect(canaries: Scores) -> Scores:
    return canaries._replace(values=canaries.members.astype(np.float64))


def _judged(tested: final_model.Memorised, sizes: Sizes) -> dict[str, Any]:
    guesses = sizes.candidates // 2
    return {
        **{name: as_json(power([getattr(tested, name)])) for name in KEPT},
        "guesses": guesses,
        "epsilon": audited_epsilon(tested.canaries, guesses),
        "ceiling": audited_epsilon(_perfect(tested.canaries), guesses),
    }


def _named(row: Mapping[str, Any]) -> list[Any]:
    return [row[name] for name in NAMED]


def _figures(row: Mapping[str, Any]) -> list[Mapping[str, float]]:
    return [row["texts"]["auc"], row["texts"]["tpr"], row["tokens"]["auc"]]


def _shown(estimate: Mapping[str, float]) -> str:
    return "{value:.3f} ({low:.3f}-{high:.3f})".format_map(estimate)
