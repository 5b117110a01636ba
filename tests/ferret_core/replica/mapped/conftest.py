"""A base model's folder as the service stores it, and what moves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferret_core.ledger.record import LedgerEntry
from ferret_core.models.load import load
from ferret_core.models.save import save_base
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import SimulationResult, simulate


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[ExperimentSpec], Path]:
    """The folder of the specification's base model."""

    def of(spec: ExperimentSpec) -> Path:
        folder = tmp_path / "base"
        folder.mkdir()
        save_base(load(spec.model), folder)
        return folder

    return of


@pytest.fixture
def simulated() -> Callable[[ExperimentSpec], tuple[SimulationResult, list[LedgerEntry]]]:
    """A simulation in memory, and its ledger."""

    def of(spec: ExperimentSpec) -> tuple[SimulationResult, list[LedgerEntry]]:
        entries: list[LedgerEntry] = []
        return simulate(spec, on_update=entries.append), entries

    return of
