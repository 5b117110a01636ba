"""The noise that protects a contribution has the distribution that its accounting rests on."""

from __future__ import annotations

import math
import secrets

import numpy as np
import pytest

from ferret_core.training import privacy
from ferret_core.training.privacy import Gaussian, ReleasePolicy, gaussian
from tests.refusals import refused

COUNT = 1_000_000


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same entropy in every run, so that no test fails once in a million runs."""
    monkeypatch.setattr(secrets, "token_bytes", np.random.default_rng(5).bytes)


@pytest.mark.usefixtures("seeded")
def test_the_noise_is_standard_normal() -> None:
    drawn = np.sort(gaussian(COUNT))
    normal = np.array([0.5 * (1 + math.erf(x / math.sqrt(2))) for x in drawn[::1000]])
    assert np.abs(normal - np.linspace(0, 1, COUNT, endpoint=False)[::1000]).max() < 2 / math.sqrt(COUNT)
    assert abs(drawn.std() - 1) < 5 / math.sqrt(2 * COUNT)
    assert drawn[0] < -4.5
    assert drawn[-1] > 4.5


@pytest.mark.usefixtures("seeded")
def test_neighbouring_entries_and_pairs_are_independent() -> None:
    drawn = gaussian(COUNT)
    for distance in (1, 2, COUNT // 2):
        assert abs(np.corrcoef(drawn[distance:], drawn[:-distance])[0, 1]) < 5 / math.sqrt(COUNT - distance)


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("length", [0.5, 40.0])
def test_a_vector_is_clipped_and_each_entry_gets_its_noise(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privacy, "CHUNK", 1 << 16)
    vector = np.full(COUNT, length / math.sqrt(COUNT), np.float32)
    protect = Gaussian(clip=2.0, noise=3.0)
    sent = protect(vector)
    assert (protect.uses, sent.dtype, sent.shape) == (1, np.float32, vector.shape)
    assert protect.norm == pytest.approx(length, rel=1e-5)
    noise = sent - vector * min(1, 2.0 / length)
    assert noise.std() == pytest.approx(6.0, rel=5 / math.sqrt(2 * COUNT))
    assert abs(noise.mean()) < 5 * 6 / math.sqrt(COUNT)


def test_two_calls_never_give_the_same_noise() -> None:
    protect = Gaussian(clip=1.0, noise=1.0)
    nothing = np.zeros(100, np.float32)
    assert not np.intersect1d(protect(nothing), protect(nothing)).size


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_without_a_length_is_refused(value: float) -> None:
    with refused("training.non_finite"):
        Gaussian(1.0, 1.0)(np.array([1, value], np.float32))


def test_only_what_is_allowed_is_reported() -> None:
    figures = {"train_loss": 2.0, "trained_sequences": 40.0}
    assert ReleasePolicy().reported(figures) == figures
    assert ReleasePolicy(frozenset({"train_loss"})).reported(figures) == {"train_loss": 2.0}
    assert (ReleasePolicy().counted(7), ReleasePolicy(examples=False).counted(7)) == (7, 1)
