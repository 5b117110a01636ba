"""The attacks find what an update holds and nothing else; intervals, the audit, and the page."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch

from ferret_bench import _leakage_page
from ferret_bench._leakage import attack, rounds, single_round
from ferret_bench._leakage.audit import AuditSizes, audit
from ferret_bench._leakage.final_model import random_texts
from ferret_bench._leakage.power import Scores, audited_epsilon, power
from ferret_bench._leakage.rounds import Deal, Round, Row
from ferret_core.models.load import load
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused

MEMBERS, OTHERS = 6, 40


def scores(values: Any, members: Any, strata: Any = None) -> Scores:
    values = np.asarray(values, float)
    return Scores(
        values[None], np.asarray(members, bool)[None], np.zeros(len(values), int) if strata is None else strata
    )


@pytest.fixture
def texts() -> list[Any]:
    """Random texts: the attacker's, the members, and others."""
    return random_texts(np.random.default_rng(3), 16 + MEMBERS + OTHERS, 384)


def test_texts_and_tokens_of_an_exact_gradient_are_found_and_no_others(tiny_model: Any, texts: list[Any]) -> None:
    with torch.no_grad():
        tiny_model.get_output_embeddings().weight.add_(0.1)  # as in trained models, hidden states share a direction
    known, candidates = attack.learn(tiny_model, texts[:16]), texts[16:]
    inside = np.arange(len(candidates)) < MEMBERS
    update = torch.stack([attack.gradient(tiny_model, text).vector for text in candidates[:MEMBERS]]).mean(dim=0)
    found = attack.text_scores(tiny_model, known, update[None], candidates)[0][0].numpy()
    assert power([scores(found, inside)]).auc.value == 1
    rest = scores(found[MEMBERS:], np.random.default_rng(0).random(OTHERS) < 0.5)
    assert power([rest]).auc.low < 0.5 < power([rest]).auc.high, "texts that were not trained on are all alike"
    tokens = attack.token_scores(tiny_model, known, update).numpy()
    occurs = attack.occurrences(candidates[:MEMBERS], 384).numpy() > 0
    assert power([scores(tokens, occurs, known.frequency.numpy())]).auc.value > 0.9
    shuffled = np.random.default_rng(1).permutation(occurs)
    nothing = power([scores(tokens, shuffled, known.frequency.numpy())]).auc
    assert nothing.low < 0.5 < nothing.high


def test_the_area_is_that_of_two_normal_distributions_within_its_interval() -> None:
    rng, signal = np.random.default_rng(0), 1.5
    true, widths = NormalDist().cdf(signal / 2**0.5), []
    for count in (200, 3200):
        members = np.arange(2 * count) < count
        found = power([scores(rng.normal(size=2 * count) + signal * members, members)])
        assert found.auc.low < true < found.auc.high
        assert found.tpr.low < NormalDist().cdf(signal - NormalDist().inv_cdf(0.99)) < found.tpr.high
        widths.append(found.auc.high - found.auc.low)
    assert widths[1] < widths[0] / 2


def test_ties_and_other_strata_tell_nothing() -> None:
    members = np.arange(40) % 2 == 0
    same = power([scores(np.ones(40), members)])
    assert (same.auc.value, same.tpr.value) == (0.5, 0)
    strata = np.arange(40) // 20
    mostly = strata == (np.arange(40) % 5 > 0)
    assert power([scores(strata, mostly)]).auc.value > 0.7
    assert power([scores(strata, mostly, strata)]).auc.value == 0.5


def test_targets_of_all_draws_count_alike() -> None:
    good, bad = (scores([0, 1, 0, 1], [0, value, 0, value]) for value in (True, False))
    inverse = good._replace(values=-good.values)
    assert bad.members.sum() == 0
    assert power([good, inverse, good, bad]).auc.value == pytest.approx(2 / 3)


def test_the_audit_is_zero_by_chance_and_at_its_ceiling_without_errors() -> None:
    """The ceilings for 100 and 200 guesses follow from e^ε / (1 + e^ε) to the power of the guesses = 0.05."""
    rng = np.random.default_rng(0)
    for guesses, ceiling in ((100, 3.5), (200, 4.2)):
        members = np.arange(2 * guesses) < guesses
        assert audited_epsilon(scores(members, members), guesses) == pytest.approx(ceiling, abs=0.05)
        assert audited_epsilon(scores(rng.random(2 * guesses), members), guesses) < 0.5
    assert audited_epsilon(scores(members, members), 200, delta=1e-3) < ceiling - 0.5


def test_every_row_sends_what_the_sites_trained(toy_spec: SpecFactory, tmp_path: Path) -> None:
    spec = toy_spec("ferret")
    loaded = load(spec.model)
    dealt = rounds.deal(spec, loaded, 128, [1, 1, 1], 0)
    played = Round(spec, loaded, dealt, 1, tmp_path)
    whole = torch.stack(list(played.rebuilt(Row("fedavg"))))
    mean = whole.mean(dim=0)
    for row in (Row("ferret", 2048, "own"), Row("ferret", 2048, "shared")):
        rebuilt = torch.stack(list(played.rebuilt(row)))
        alike = torch.nn.functional.cosine_similarity(rebuilt[:, None], whole[None], dim=-1)
        assert alike.argmax(dim=1).tolist() == [0, 1, 2]
        assert alike.diagonal().min() > 0.3
    (masked,) = played.rebuilt(Row("ferret", 2048, "shared", 3, masked=True))
    assert torch.nn.functional.cosine_similarity(masked, mean, dim=0) > 0.3


def test_scores_do_not_depend_on_the_number_of_updates_in_memory(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = toy_spec("ferret")
    loaded = load(spec.model)
    public, outside, *sites = rounds.deal(spec, loaded, 128, [3, 2, 1, 1, 1], 0)
    dealt = Deal(public, outside, sites)
    rows = [Row("fedavg"), Row("fedavg", sites=3), Row("ferret", 2048, "shared")]
    rows.append(Row("ferret", 2048, "shared", 3, masked=True))
    whole = single_round.draw(spec, loaded, dealt, rows, 1, lambda _: None)
    monkeypatch.setattr(single_round, "UPDATES", 0)
    monkeypatch.setattr(attack, "DIRECTIONS", 0)
    alone = single_round.draw(spec, loaded, dealt, rows, 1, lambda _: None)
    for row in rows:
        for found, expected in zip(alone.rows[row], whole.rows[row], strict=True):
            np.testing.assert_allclose(found.values, expected.values, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_the_audit_finds_canaries_in_sums_without_noise_and_fewer_under_it(toy_spec: SpecFactory) -> None:
    sizes = AuditSizes(canaries=300, public=16, sites=5, rounds=1)
    found = [audit(toy_spec("ferret"), 8.0, sizes, lambda _: None, noise=noise).sums for noise in (False, True)]
    bare, noised = (power([each]).auc.value for each in found)
    assert bare > 0.7
    assert bare > noised + 0.05


def test_too_few_texts_and_other_training_are_refused(toy_spec: SpecFactory) -> None:
    spec = toy_spec("ferret")
    with refused("dataset.invalid", "11 are needed"):
        rounds.deal(spec, load(spec.model), 128, [5, 6], 0)
    with refused("spec.invalid", "choose ferret or fedavg"):
        rounds.row_spec(toy_spec("fedzo"), Row("fedavg"), 1, 3, 1)


def test_the_page_has_the_rows_of_the_run_and_the_prior_after_them(tmp_path: Path) -> None:
    def figures(value: float) -> dict[str, Any]:
        return {name: {"value": value, "low": value - 0.01, "high": value + 0.01} for name in ("auc", "tpr")}

    sent = {"algorithm": "ferret", "bytes": 8192, "seeds": "own", "sites": 1, "masked": False, "steps": 10}
    told = {"texts": figures(0.9), "tokens": figures(0.7)}
    summed = {**sent, "seeds": "shared", "sites": 10, "masked": True}
    prior = {**sent, "algorithm": "prior", "bytes": None, "seeds": None}
    kept = {name: figures(0.8) for name in ("texts", "canaries", "prior")}
    final = {**summed, "steps": None, "rounds": 12, **kept, "guesses": 100, "epsilon": 1.234, "ceiling": 3.49}
    run = {
        "asked": {"max_seconds": 3600.0},
        "model": "small",
        "parameters": 1000,
        "dataset": "dolly",
        "max_tokens": 256,
        "draws": 2,
        "local": {"optimizer": "normalized", "learning_rate": 0.1},
        "sizes": {
            "draws": 3,
            "public": 64,
            "outside": 200,
            "members": 5,
            "candidates": 200,
            "audit": {"canaries": 1000, "public": 256, "sites": 5, "rounds": 6},
        },
        "texts_per_step": 4,
        "rounds": [{**sent, **told}, {**summed, **told}],
        "priors": [{**prior, "texts": figures(0.5), "tokens": figures(0.6)}],
        "audits": [
            {"epsilon": 3.0, "noise": noise, "noise_multiplier": 2.0, "sums": figures(0.6), "final": figures(0.5)}
            | {"guesses": 100, "audited": 0.5, "ceiling": 3.5}
            for noise in (True, False)
        ],
        "final": [final],
        "skipped": [{**final, "seeds": "own", "masked": False}],
    }
    (tmp_path / "leakage.json").write_text(json.dumps(run))
    _leakage_page.main([str(tmp_path / "leakage.json")])
    lines = (tmp_path / "leakage.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and "(" in line]
    assert [row.split(" | ")[0] for row in rows] == [
        "| Ferret 8 kB, own seeds: one contribution",
        "| Ferret 8 kB, shared seeds: secure sum of 10",
        "| prior of one contribution",
        "| Ferret 8 kB, shared seeds, secure sums",
        "| protected, ε = 3",
        "| not protected: no noise",
    ]
    assert rows[0].endswith("| 0.90 (0.89–0.91) | 0.90 (0.89–0.91) | 0.70 (0.69–0.71) |")
    assert rows[3].endswith("| 0.80 (0.79–0.81) | 1.23 |")
    assert rows[5].endswith("| 0 | 0.60 (0.59–0.61) | 0.60 (0.59–0.61) | 0.50 (0.49–0.51) | 0.50 |")
    assert "Draws of texts: 2." in " ".join(lines)
    assert "**No time was left for** Ferret 8 kB, own seeds." in lines
    assert "## One round: each site trains on 40 texts, in 10 steps" in lines
