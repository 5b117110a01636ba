"""Garbage collection never touches a file that something names, nor one that something may be about to name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from ferret_core.storage import FileKind, Storage, StoredFile, open_storage
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.engine.garbage_collection import collect
from ferret_db.repositories import contributions, stored_files
from ferret_db.tables import Contribution

Lab = Any  # tests/ferret_db/conftest.py
DAY = 24 * 3600.0


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(f"file://{tmp_path}/storage")


@pytest.fixture
def old(storage: Storage) -> Callable[..., StoredFile]:
    """``old(b"x", FileKind.UPDATE)``: a file that was stored two days ago."""

    def put(data: bytes, kind: str) -> StoredFile:
        stored = storage.put_bytes(data, kind)
        age(storage, stored.location, 2 * DAY)
        return stored

    return put


def age(storage: Storage, location: str, seconds: float) -> None:
    then = storage.clock() - seconds
    os.utime(storage.path(location), (then, then))


def stored(storage: Storage) -> set[str]:
    return {file.location for file in storage.list()}


def remember(database: Database, number: int, participant: str, digest: str) -> None:
    """Gives a delivered contribution a memory."""
    with database.begin() as s:
        s.execute(
            update(Contribution)
            .where(Contribution.round == number, Contribution.participant == participant)
            .values(memory_digest=digest)
        )


def memories(database: Database) -> set[tuple[int, str]]:
    with database.read() as s:
        return {(file.round, file.digest) for file in stored_files.of_all(s) if file.kind == FileKind.MEMORY}


def test_what_nothing_names_goes_once_it_is_old(database: Database, storage: Storage, old: Any) -> None:
    orphan, young = old(b"orphan", FileKind.UPDATE), storage.put_bytes(b"young", FileKind.UPDATE)
    draft = str(Path(old(b"killed", FileKind.MEMORY).location).with_name(".tmp-1"))
    storage.path(draft).write_bytes(b"ki")
    age(storage, draft, 2 * DAY)
    assert collect(database, storage, dry_run=True) == (3, 6 + 6 + 2)
    assert len(stored(storage)) == 4
    assert collect(database, storage) == (3, 6 + 6 + 2)
    assert stored(storage) == {young.location}
    assert collect(database, storage) == (0, 0)
    assert orphan.location not in stored(storage)


def test_what_something_names_stays_however_old(database: Database, lab: Lab, storage: Storage, old: Any) -> None:
    experiment = lab.start()
    round_ = lab.open(experiment, participants=1)
    sent, update_, weights = (
        old(b"contribution", FileKind.CONTRIBUTION),
        old(b"update", FileKind.UPDATE),
        old(b"weights", FileKind.CHECKPOINT),
    )
    lab.accept(lab.lease(lab.assignments(round_)[0]), digest=sent.digest)
    with database.begin() as s:
        rounds.commit_round(
            s,
            round_.id,
            digest="dd" * 32,
            record={"clipped": [], "refused": []},
            record_hash="ab" * 32,
            update_digest=update_.digest,
            update_size=update_.size,
            artifacts=[ArtifactFile("model.safetensors", weights.size, weights.digest, weights.location)],
            metrics={},
            inside={},
        )
    garbage = old(b"garbage", FileKind.UPDATE)
    assert collect(database, storage) == (1, 7)
    assert stored(storage) == {sent.location, update_.location, weights.location}
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
        lifecycle.delete(s, experiment.id)
    assert collect(database, storage) == (3, 12 + 6 + 7)
    assert garbage.location not in stored(storage)


def test_a_file_that_is_stored_but_not_yet_named_is_left_alone(
    database: Database, lab: Lab, storage: Storage, old: Any
) -> None:
    """It may have lain there for days, as garbage, when the same bytes are stored again."""
    garbage = old(b"sent again", FileKind.CONTRIBUTION)
    assert storage.put_bytes(b"sent again", FileKind.CONTRIBUTION) == garbage
    assert collect(database, storage) == (0, 0)
    round_ = lab.open(lab.start(), participants=1)
    lab.accept(lab.lease(lab.assignments(round_)[0]), digest=garbage.digest)
    age(storage, garbage.location, 2 * DAY)
    assert collect(database, storage) == (0, 0)


def test_a_file_that_is_stored_while_the_sweep_is_on_is_left_alone(
    database: Database, storage: Storage, old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    garbage, listing = old(b"wanted after all", FileKind.UPDATE), storage.list()

    def listed_then_stored() -> Any:
        yield from listing
        storage.put_bytes(b"wanted after all", FileKind.UPDATE)

    files = list(listed_then_stored())
    monkeypatch.setattr(type(storage), "list", lambda self: iter(files))
    assert collect(database, storage) == (0, 0)
    assert storage.path(garbage.location).is_file()


def test_the_memory_that_counts_next_is_kept_and_older_ones_go(database: Database, lab: Lab) -> None:
    experiment = lab.start(rounds=3)
    for number in (1, 2):
        round_ = lab.freeze(experiment, number)
        for name in ("client-0", "client-1"):
            remember(database, number, name, f"{name}:{number}")
        assert (number, f"client-0:{number}") in memories(database), "a frozen round's may come to count"
        lab.commit(round_, digest=f"d{number}" * 32)
        experiment = lab.get(experiment)
    assert memories(database) == {(2, "client-0:2"), (2, "client-1:2")}
    lab.freeze(experiment, 3)
    remember(database, 3, "client-0", "client-0:3")
    assert memories(database) == {(2, "client-0:2"), (2, "client-1:2"), (3, "client-0:3")}
    with database.begin() as s:
        lifecycle.cancel(s, experiment.id)
    assert memories(database) == set(), "nothing goes on from a cancelled experiment"


def test_a_memory_is_kept_until_a_later_one_is_in_the_model(database: Database, lab: Lab) -> None:
    experiment = lab.start(rounds=2)
    for number, refused in ((1, []), (2, [["client-0", "ab" * 32, "too far from the others"]])):
        round_ = lab.freeze(experiment, number)
        remember(database, number, "client-0", f"client-0:{number}")
        lab.commit(round_, digest=f"d{number}" * 32, refused=refused)
        experiment = lab.get(experiment)
    with database.read() as s:
        assert contributions.memory_of(s, experiment.id, "client-0", 3) == "client-0:1"
    assert memories(database) == {(1, "client-0:1")}


def test_the_memory_of_an_abandoned_attempt_never_counts(database: Database, lab: Lab) -> None:
    experiment = lab.start()
    round_ = lab.freeze(experiment)
    remember(database, 1, "client-0", "client-0:1")
    with database.begin() as s:
        lifecycle.abandon_round(s, lab.get(round_), None)
    assert memories(database) == set()


def test_the_references_of_one_experiment_are_its_own(database: Database, lab: Lab) -> None:
    experiment, other = lab.start(), lab.start()
    lab.commit(lab.freeze(experiment))
    with database.read() as s:
        found = list(stored_files.of_all(s, experiment.id))
        assert {file.experiment_id for file in found} == {experiment.id}
        assert {file.experiment_id for file in stored_files.of_all(s)} == {experiment.id, other.id}
    assert {(file.kind, file.round): file.needed for file in found} == {
        (FileKind.CHECKPOINT, 0): True,
        (FileKind.CHECKPOINT, 1): False,
        (FileKind.UPDATE, 1): True,
        (FileKind.CONTRIBUTION, 1): False,
    }


def test_a_contribution_is_needed_until_its_round_is_committed(database: Database, lab: Lab) -> None:
    lab.freeze(lab.start())
    with database.read() as s:
        sent = [file for file in stored_files.of_all(s) if file.kind == FileKind.CONTRIBUTION]
    assert [file.needed for file in sent] == [True] * 3


@pytest.mark.about_database
def test_it_is_done_once_a_day_by_whoever_comes_first(database: Database, storage: Storage, old: Any) -> None:
    with storage.collecting(every=0):
        assert collect(database, storage) is None, "another one is at it"
        assert collect(database, storage, dry_run=True) == (0, 0)
    assert collect(database, storage, every=DAY) is None
    os.utime(storage.path(".collected"), (storage.clock() - DAY - 1,) * 2)
    old(b"garbage", FileKind.UPDATE)
    assert collect(database, storage, every=DAY) == (1, 7)
    assert collect(database, storage, every=DAY) is None
    assert collect(database, storage) == (0, 0), "whoever asks for it now gets it now"
