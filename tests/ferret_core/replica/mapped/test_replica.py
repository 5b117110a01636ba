"""A replica in mapped files: the same model, bit for bit, as one in memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.ledger.record import LedgerEntry
from ferret_core.models.load import load
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.mapped.replica import MappedReplica
from ferret_core.replica.replica import replay
from ferret_core.simulate import SimulationResult
from tests.digests import digest_of
from tests.ferret_core.replicas import SpecFactory
from tests.refusals import refused
from tests.tiers import slow

Stored = Callable[[ExperimentSpec], Path]
Made = Callable[..., tuple[MappedReplica, list[LedgerEntry]]]
Simulated = Callable[[ExperimentSpec], tuple[SimulationResult, list[LedgerEntry]]]

FERRET = {"name": "ferret", "refuse_noisy_rounds": False, "local": {"steps": 1}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "G": FERRET,
    "T": FERRET | {"basis": "T", "K": 64, "coordinates": "float16", "allocation": "uniform"},
    "shared": FERRET | {"seeds": "shared", "coordinates": "float16", "allocation": "uniform"},
    "fedavg": {"name": "fedavg", "local": {"steps": 1}},
    "fedkseed": {"name": "fedkseed", "K": 16, "local": {"steps": 2}},
    "importance": {"name": "fedkseed", "sampling": "importance", "K": 16, "local": {"steps": 2}},
}


@pytest.fixture
def made(toy_spec: SpecFactory, stored: Stored, simulated: Simulated, tmp_path: Path) -> Made:
    """``made(FERRET, processes=1)``: a replica of a small experiment in the folder ``mapped``, and its ledger."""

    def make(algorithm: Any = FERRET, dtype: str = "bfloat16", **how: Any) -> tuple[MappedReplica, list[LedgerEntry]]:
        spec = small(toy_spec, algorithm, dtype)
        return MappedReplica(spec, stored(spec), tmp_path / "mapped", **how), simulated(spec)[1]

    return make


def small(
    toy_spec: SpecFactory, algorithm: dict[str, Any] = FERRET, dtype: str = "bfloat16", **more: Any
) -> ExperimentSpec:
    tree = toy_spec(rounds=2, algorithm=algorithm, **more).model_dump(mode="json")
    tree["model"]["dtype"] = dtype
    tree["evaluation"] = {"examples": 1, "generate_examples": 0}
    return ExperimentSpec.model_validate(tree)


@pytest.mark.parametrize("name", ["G", "fedavg", "fedkseed", *slow("T", "shared", "importance")])
@pytest.mark.heavy
def test_following_the_ledger_in_files_gives_the_digests_of_memory(name: str, made: Made) -> None:
    replica, entries = made(ALGORITHMS[name], processes=2)
    assert [record.digest for record in replay(replica, entries)] == [entry.record.digest for entry in entries]
    assert replica.digest == entries[-1].record.digest


@pytest.mark.parametrize("dtype", ["float32", *slow("float16")])
@pytest.mark.parametrize("processes", [3, *slow(1)])
@pytest.mark.heavy
def test_so_does_every_type_of_weights_and_number_of_processes(dtype: str, processes: int, made: Made) -> None:
    replica, entries = made(dtype=dtype, processes=processes)
    list(replay(replica, entries))
    assert replica.digest == entries[-1].record.digest


def test_a_round_can_be_undone_and_made_again(made: Made) -> None:
    replica, (first, _) = made()
    base, state = replica.digest, replica.snapshot()
    replica.apply(first.update)
    replica.update_digest()
    assert replica.digest == first.record.digest
    replica.restore(state)
    replica.update_digest()
    assert replica.digest == base
    replica.advance(first.record, first.update)
    assert replica.digest == first.record.digest


def test_a_checkpoint_is_links_to_files_that_no_later_round_moves(made: Made, tmp_path: Path) -> None:
    replica, (first, second) = made()
    base = tmp_path / "base"
    untouched = {path.name: path.read_bytes() for path in base.iterdir()}
    replica.advance(first.record, first.update)
    checkpoint.write_folder(replica, "exp", tmp_path / "checkpoint")
    (weights,) = (tmp_path / "checkpoint").glob("*.safetensors")
    assert weights.stat().st_nlink == 2
    replica.advance(second.record, second.update)
    loaded = load(ModelSpec(source=str(tmp_path / "checkpoint"), dtype="bfloat16"), anywhere=True)
    assert digest_of(loaded.model, replica.spec.model.source) == first.record.digest
    assert weights.stat().st_nlink == 1
    assert {path.name: path.read_bytes() for path in base.iterdir()} == untouched


def test_a_mapped_checkpoint_has_the_files_of_one_from_memory(
    toy_spec: SpecFactory, stored: Stored, tmp_path: Path
) -> None:
    spec = small(toy_spec)
    base = stored(spec)
    replica = MappedReplica(spec, base, tmp_path / "mapped")
    checkpoint.write_folder(replica, "exp", tmp_path / "checkpoint")
    written = {path.name: path.read_bytes() for path in (tmp_path / "checkpoint").iterdir()}
    assert written.pop(checkpoint.MANIFEST)
    there = {path.name: path.read_bytes() for path in base.iterdir()}
    config, its = (json.loads(files.pop("config.json")) for files in (written, there))
    assert (config.pop("dtype"), its.pop("dtype")) == (spec.model.dtype, "float32")
    assert (written, config) == (there, its)


def test_nothing_is_left_when_it_goes_or_its_process_was_killed(
    toy_spec: SpecFactory, stored: Stored, tmp_path: Path
) -> None:
    spec, root = small(toy_spec), tmp_path / "mapped"
    base = stored(spec)
    first = MappedReplica(spec, base, root)
    shutil.copytree(next(filter(Path.is_dir, root.iterdir())), root / "of-a-process-that-was-killed")
    second = MappedReplica(spec, base, root)
    assert len([path for path in root.iterdir() if path.is_dir()]) == 2
    del first, second
    assert [path.name for path in root.iterdir()] == ["lock"]


def test_files_that_do_not_cover_the_model_are_refused_by_name(
    toy_spec: SpecFactory, stored: Stored, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    spec = small(toy_spec)
    base = stored(spec)
    (path,) = base.glob("*.safetensors")
    arrays = load_file(path)
    name = "model.layers.0.mlp.up_proj.weight"
    missing = arrays.pop(name)
    save_file(arrays, path, {"format": "pt"})
    with refused("model.invalid", name):
        MappedReplica(spec, base, tmp_path / "mapped")
    save_file({**arrays, name: missing.float()}, path, {"format": "pt"})
    with refused("model.invalid", "FERRET_WEIGHTS_IN"):
        MappedReplica(spec, base, tmp_path / "mapped")


def test_where_a_copy_does_not_fit_the_model_stays_where_it_was(made: Made) -> None:
    replica, (first, _) = made()
    base = replica.digest
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with refused("storage.full"):
            replica.advance(first.record, first.update)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert replica.digest == base
    replica.advance(first.record, first.update)
    assert replica.digest == first.record.digest


@pytest.mark.heavy
def test_a_process_of_the_pool_that_was_killed_is_told(made: Made) -> None:
    replica, (first, _) = made(processes=2)
    (child,) = replica.pool.children
    os.kill(child, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="has ended with -9"):
        replica.apply(first.update)


def test_files_that_nobody_needs_are_written_over(made: Made, tmp_path: Path) -> None:
    replica, entries = made()
    seen: list[set[int]] = []
    for record, _, update in [*entries, entries[-1]]:
        replica.snapshot()
        replica.apply(update)
        replica.update_digest()
        assert replica.round > replica.spec.rounds or replica.digest == record.digest
        seen.append({path.stat().st_ino for path in (tmp_path / "mapped").rglob("*.safetensors")})
    assert [len(files) for files in seen] == [2, 2, 2]
    assert seen[1] == seen[2]
