"""Database tests run on a schema made by the migrations, on SQLite or on either database (tests/tiers.py)."""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from ferret_core.contribution import SealedContribution
from ferret_core.protocol import wire
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import ContributionMeta
from ferret_core.rounds.cost import LocalCost
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.acceptance import ContributionOffer, accept
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.pagination import Page
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import events as event_rows
from ferret_db.repositories import outbox
from ferret_db.tables import (
    FIRST_PROJECT,
    Assignment,
    Base,
    Contribution,
    Experiment,
    OutboxMessage,
    Project,
    Round,
)
from tests.tiers import EITHER_DATABASE


@pytest.fixture(params=EITHER_DATABASE)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path, postgresql: Any) -> Iterator[str]:
    """A database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ferret.db"
    else:
        with postgresql() as url:
            yield url


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: Any) -> Iterator[str]:
    with postgresql(migrated=True) as url:
        yield url


@pytest.fixture(params=EITHER_DATABASE)
def url(request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> Iterator[str]:
    """A migrated database without any row but the first project's."""
    if request.param == "sqlite":
        copy = tmp_path / "ferret.db"
        shutil.copyfile(migrated, copy)
        yield f"sqlite:///{copy}"
        return
    yield (shared := request.getfixturevalue("migrated_postgresql"))
    database = Database(shared)
    with database.begin() as s:  # on so few rows much faster than TRUNCATE
        for table in reversed(Base.metadata.sorted_tables):
            s.execute(table.delete())
        s.add(Project(name=FIRST_PROJECT))  # made by the migrations
    database.dispose()


class Sent(list[tuple[str, str]]):
    """The (task, argument) pairs that a database sent; while ``taken``, a worker takes each at once."""

    taken = True


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def database(url: str, sent: Sent) -> Iterator[Database]:
    waiting = threading.local()

    def dispatch(messages: list[OutboxMessage]) -> None:
        sent.extend((message.task.value, message.argument) for message in messages)
        if not sent.taken:
            return
        if hasattr(waiting, "messages"):  # it is being emptied further up
            waiting.messages.extend(messages)
            return
        waiting.messages = deque(messages)
        while waiting.messages:
            message = waiting.messages.popleft()
            with database.begin() as s:
                outbox.take(s, message.task, message.argument)
        del waiting.messages

    database = Database(url, dispatch)
    yield database
    database.dispose()


class Lab:
    """Short ways to the states that tests start from."""

    base_digest = "ba" * 32

    def __init__(self, database: Database) -> None:
        self.database = database

    def spec(self, **changes: Any) -> ExperimentSpec:
        return ExperimentSpec.model_validate(
            {
                "name": "toy",
                "rounds": 2,
                "model": {"source": "models/toy"},
                "dataset": {"name": "gsm8k", "path": "data"},
                "participants": {"simulated": 3},
                **changes,
            }
        )

    def file(self, number: int) -> ArtifactFile:
        return ArtifactFile("model.safetensors", 9, "f1" * 32, f"round-{number}/model.safetensors")

    def submit(self, **changes: Any) -> Experiment:
        with self.database.begin() as s:
            return lifecycle.submit(s, self.spec(**changes))[0]

    def start(self, **changes: Any) -> Experiment:
        experiment = self.submit(**changes)
        with self.database.begin() as s:
            return lifecycle.start(s, experiment.id, self.base_digest, {"a": [4], "b": [2]}, [self.file(0)])

    def task(self, experiment: Experiment, number: int, participant: str) -> RoundTask:
        return RoundTask(
            experiment=experiment.id,
            round=number,
            rounds=experiment.rounds,
            participant=participant,
            base_digest=experiment.digest or self.base_digest,
            data_seed=2**64 - 1,
            seed=2,
            round_seed=3,
            population=3,
        )

    def open(
        self,
        experiment: Experiment,
        participants: int = 3,
        deadline: float = 60,
        number: int = 1,
        needed: int | None = None,
    ) -> Round:
        tasks = [
            (self.task(experiment, number, f"client-{i}"), ParticipantKind.SIMULATED, None) for i in range(participants)
        ]
        with self.database.begin() as s:
            return rounds.open_round(s, experiment.id, number, tasks, deadline, bytes_down_each=100, needed=needed)

    def assignments(self, round_: Round) -> list[Assignment]:
        with self.database.read() as s:
            return assignment_rows.of_round(s, round_.id)

    def lease(self, assignment: Assignment, seconds: float = 60) -> Assignment:
        with self.database.begin() as s:
            leased = assignments.lease(s, assignment.id, seconds)
        assert leased is not None
        return leased

    def meta(self, assignment: Assignment, **changes: Any) -> ContributionMeta:
        task = assignment.task
        of_task = {field: task[field] for field in ("experiment", "round", "participant", "base_digest")}
        metrics = {"train_loss": 2.5}
        return ContributionMeta.model_validate(
            {"format": 1, **of_task, "algorithm": "ferret", "examples": 7, "metrics": metrics, **changes}
        )

    def sealed(self, leased: Assignment, digest: str, **changes: Any) -> SealedContribution:
        """50 bytes that the engine never looks into, under any digest."""
        return SealedContribution((bytes(50),), digest, wire.Contribution(self.meta(leased, **changes), {}))

    def accept(self, leased: Assignment, digest: str = "c0" * 32, **changes: Any) -> Contribution:
        with self.database.begin() as s:
            sealed = self.sealed(leased, digest, **changes)
            return accept(s, ContributionOffer(leased.id, leased.fence, sealed, LocalCost(1.5)))

    def deliver(self, assignment: Assignment) -> Contribution:
        """Leases and accepts; the digest is the participant's."""
        return self.accept(self.lease(assignment), digest=f"{assignment.participant}:{assignment.round}")

    def reject(self, leased: Assignment, code: str = "training.non_finite") -> None:
        with self.database.begin() as s:
            assignments.reject(s, leased.id, leased.fence, FerretError(code, "the loss is nan"))

    def freeze(self, experiment: Experiment, number: int = 1) -> Round:
        round_ = self.open(experiment, number=number)
        for assignment in self.assignments(round_):
            self.deliver(assignment)
        return round_

    def commit(
        self, round_: Round, digest: str = "dd" * 32, refused: Sequence[Sequence[str]] = (), **metrics: float
    ) -> bool:
        with self.database.begin() as s:
            return self.commit_in(s, round_, digest, refused, **metrics)

    def commit_in(
        self, s: Session, round_: Round, digest: str, refused: Sequence[Sequence[str]] = (), **metrics: float
    ) -> bool:
        return rounds.commit_round(
            s,
            round_.id,
            digest=digest,
            record={"round": round_.number, "scale": 1e16, "clipped": [], "refused": [*refused]},
            record_hash="ab" * 32,
            update_digest="cd" * 32,
            update_size=40,
            artifacts=[self.file(round_.number)],
            metrics=metrics,
            inside={},
        )

    def events(self, experiment_id: str) -> list[str]:
        """The types of all that happened."""
        with self.database.read() as s:
            return [event.type for event in event_rows.after(s, experiment_id, 0, 10_000)]

    def get(self, row: Any) -> Any:
        """The row as the database has it now."""
        with self.database.read() as s:
            return s.get_one(type(row), row.id)

    def age(self, table: type[Base], column: str, seconds: float, *criteria: Any) -> None:
        """Moves the times in a column into the past."""
        with self.database.begin() as s:
            moved = self.database.now(s) - timedelta(seconds=seconds)
            s.execute(update(table).where(*criteria).values({column: moved}))

    def race(self, act: Callable[[int], Any], threads: int = 8) -> list[Any]:
        """``act(i)`` on so many threads at once."""
        barrier = Barrier(threads)

        def run(i: int) -> Any:
            barrier.wait()
            return act(i)

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(run, range(threads)))


@pytest.fixture
def lab(database: Database) -> Lab:
    return Lab(database)


def pages(database: Database, read: Callable[[Session, str | None], Page[Any]]) -> Iterator[list[Any]]:
    """The items of every page that ``read(session, cursor)`` gives, each in a transaction."""
    cursor = None
    while True:
        with database.read() as s:
            page = read(s, cursor)
        yield page.items
        if (cursor := page.next_cursor) is None:
            return
