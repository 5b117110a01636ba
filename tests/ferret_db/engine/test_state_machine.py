"""The round engine against a model of a page: whatever order things happen in, both end alike, on both databases.

Time is never waited for: leases run out and deadlines pass because the database says so. A process that dies before its
commit is a transaction that is undone. ``FERRET_TEST_EXAMPLES=1000`` runs as many random histories instead of the few
that are the same every time.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ferret_core.ledger.record import contributions_digest
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds.cost import LocalCost
from ferret_db.database import Database
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.acceptance import ContributionOffer, accept
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import contributions
from ferret_db.tables import Assignment, Base, Event, Experiment, LedgerEntry, OutboxMessage, Rejection, Round

EXAMPLES = os.environ.get("FERRET_TEST_EXAMPLES")
PROFILE = settings(
    stateful_step_count=60,
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
FAR = 1e6
"""Seconds that no test takes."""
MODEL, CONFLICT, LOST, CLOSED = "ba" * 32, "experiment.conflict", "lease.lost", "round.closed"
WAITING, OVER = {"pending", "leased"}, {"completed", "failed", "cancelled"}


@dataclass
class Task:
    """A model's assignment."""

    participant: str
    id: str = ""
    state: str = "pending"
    fence: int = 0
    ran_out: bool = False
    digest: str | None = None
    refused: Counter[str] = field(default_factory=Counter[str])

    def free(self, state: str) -> None:
        self.state, self.fence, self.ran_out = state, self.fence + 1, False


@dataclass
class Turn:
    """A model's round, one attempt at it."""

    number: int
    attempt: int
    base: str
    tasks: list[Task]
    id: str = ""
    state: str = "open"
    overdue: bool = False

    def count(self, states: set[str]) -> int:
        return sum(task.state in states for task in self.tasks)

    def end(self, state: str) -> None:
        self.state = state
        for task in self.tasks:
            if task.state in WAITING:
                task.free("expired")


@dataclass(frozen=True)
class Held:
    """What a worker believes to hold."""

    turn: Turn
    task: Task
    fence: int


@dataclass
class Model:
    """What the engine is to do, without a database, processes or time."""

    asked: int
    needed: int
    quorum: int
    attempts: int
    rounds: int
    state: str = "running"
    committed: int = 0
    digest: str = MODEL
    turns: list[Turn] = field(default_factory=list[Turn])
    keys: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def open(self) -> tuple[int, int] | str:
        last = self.turns[-1] if self.turns else None
        if last is not None and last.number == self.committed + 1 and last.state != "abandoned":
            return last.number, last.attempt
        if self.state != "running":
            return CONFLICT
        attempt = last.attempt + 1 if last is not None and last.number == self.committed + 1 else 1
        tasks = [Task(f"client-{i}") for i in range(self.asked)]
        self.turns.append(Turn(self.committed + 1, attempt, self.digest, tasks))
        return self.committed + 1, attempt

    def lease(self, turn: Turn, task: Task) -> int | None:
        free = task.state == "pending" or (task.state == "leased" and task.ran_out)
        if self.state != "running" or turn.state != "open" or not free:
            return None
        task.free("leased")
        return task.fence

    def heartbeat(self, held: Held) -> str:
        if held.task.state != "leased" or held.task.fence != held.fence:
            return LOST
        held.task.ran_out = False
        return "held"

    def give_back(self, held: Held) -> str | None:
        if not self._holds(held):
            return LOST
        held.task.state = "pending"
        return None

    def report(self, held: Held, digest: str, key: str | None) -> str:
        task = held.task
        if task.digest == digest:
            return digest
        if key is not None and (task.participant, key) in self.keys:
            return "idempotency.conflict"
        if task.digest is not None:
            return "contribution.duplicate"
        if refusal := self._refusal(held):
            return refusal
        task.state, task.digest = "accepted", digest
        if key is not None:
            self.keys.add((task.participant, key))
        self.close(held.turn)
        return digest

    def report_of_another_model(self, held: Held) -> str:
        return self._refusal(held) or "contribution.wrong_base"

    def reject(self, held: Held) -> str | None:
        if held.task.state == "rejected" and held.task.fence == held.fence:
            return None
        if refusal := self._refusal(held):
            return refusal
        held.task.state = "rejected"
        self.close(held.turn)
        return None

    def close(self, turn: Turn) -> bool:
        accepted = turn.count({"accepted"})
        if self.state != "running" or turn.state != "open":
            return False
        if accepted < self.needed and turn.count(WAITING) and not turn.overdue:
            return False
        if accepted >= self.quorum:
            turn.end("frozen")
        else:
            self._miss(turn)
        return turn.state == "frozen"

    def sweep(self) -> None:
        for turn in self.turns:
            self.close(turn)
            for task in turn.tasks:
                if turn.state == "open" and task.state == "leased" and task.ran_out:
                    task.state, task.ran_out = "pending", False

    def commit(self, turn: Turn, digest: str) -> bool:
        if turn.state != "frozen":
            return False
        turn.state, self.committed, self.digest = "committed", turn.number, digest
        return True

    def give_up(self, turn: Turn) -> None:
        if turn.state == "frozen":
            self._miss(turn)

    def pause(self) -> str:
        if self.state == "running":
            self.state = "paused"
            for task in self._waiting():
                task.free("pending")
        return self.state if self.state == "paused" else CONFLICT

    def resume(self) -> str:
        if self.state == "paused":
            self.state = "running"
        return self.state if self.state == "running" else CONFLICT

    def extend(self) -> str:
        if self.state not in {"running", "paused", "completed"}:
            return CONFLICT
        self.state = "running" if self.state == "completed" else self.state
        self.rounds += 1
        return self.state

    def finish(self, state: str) -> str:
        if self.state in OVER:
            return state if self.state == state else CONFLICT
        self.state = state
        for turn in self.turns:
            if turn.state in {"open", "frozen"}:
                turn.end("abandoned")
        return state

    def _miss(self, turn: Turn) -> None:
        if turn.attempt < self.attempts:
            turn.end("abandoned")
        else:
            self.finish("failed")

    def _waiting(self) -> list[Task]:
        return [task for turn in self.turns if turn.state == "open" for task in turn.tasks if task.state in WAITING]

    def _refusal(self, held: Held) -> str | None:
        return CLOSED if held.turn.state != "open" else None if self._holds(held) else LOST

    def _holds(self, held: Held) -> bool:
        return (held.task.state, held.task.fence, held.task.ran_out) == ("leased", held.fence, False)


class Plan(NamedTuple):
    """How an experiment closes its rounds: ``spare`` of the asked need not report."""

    asked: int
    spare: int
    quorum: float
    attempts: int


class Died(Exception):
    """The process, before its commit."""


class Pick(NamedTuple):
    """What a happening is about: so far back from the newest, which of its tasks, an old lease too, under a key."""

    back: int
    whose: int
    old: bool
    key: str | None


plans = st.builds(Plan, st.integers(1, 4), st.integers(0, 2), st.sampled_from([0.5, 1.0]), st.integers(1, 2))
picks = st.builds(
    Pick,
    st.integers(0, 4),
    st.integers(0, 3),
    st.sampled_from([False, False, False, True]),
    st.sampled_from([None, None, "key"]),
)


often = {
    # a worker
    "lease": 6,
    "report": 5,
    "repeat": 1,
    "give_back": 3,
    "heartbeat": 2,
    "reject": 2,
    "bad": 1,
    "misled": 1,
    # the service
    "go_on": 4,
    "coordinate": 1,
    "aggregate": 2,
    "close": 3,
    "sweep": 3,
    # a researcher
    "pause": 2,
    "resume": 4,
    "extend": 1,
    "cancel": 1,
    # misfortune
    "dies": 2,
    "runs_out": 3,
    "overdue": 2,
    "rots": 1,
}
happenings = st.sampled_from([what for what, weight in often.items() for _ in range(weight)])


class Machine(RuleBasedStateMachine):
    """Does the same to the engine and to the model, and compares all there is after every step."""

    def __init__(self, database: Database, lab: Any) -> None:
        super().__init__()
        self.database, self.lab = database, lab
        self.holds: list[Held] = []
        self.plans: list[Plan] = []
        self.dying, self.steps, self.over = False, 0, 0

    @initialize(drawn=st.lists(plans, min_size=3, max_size=3))
    def begin(self, drawn: list[Plan]) -> None:
        self.plans = drawn
        self._begin()

    @rule(what=happenings, pick=picks)
    def happens(self, what: str, pick: Pick) -> None:
        """One rule for all: of several, Hypothesis would leave half out of a history. The next experiment begins soon
        after one is over."""
        self.over += self.model.state in OVER
        if self.over > 3:
            self.teardown()
            self._begin()
        getattr(self, what)(pick)

    def lease(self, pick: Pick) -> None:
        turn = self._turn(pick)
        if turn is not None:
            waiting = [task for task in turn.tasks if task.state == "pending"]
            among = turn.tasks if pick.old or not waiting else waiting
            self._lease(turn, among[pick.whose % len(among)])

    def report(self, pick: Pick) -> None:
        if held := self._held(pick):
            self._report(held, f"{held.task.id}:{held.fence}:{self.steps}", pick.key)

    def repeat(self, pick: Pick) -> None:
        """Sends again what was accepted."""
        sent = [held for held in self.holds if held.task.digest]
        if sent:
            held = sent[-1 - pick.back % len(sent)]
            self._report(held, str(held.task.digest), pick.key)

    def misled(self, pick: Pick) -> None:
        """Reports what was trained from another model."""
        held = self._held(pick)
        if held is not None and held.task.digest is None:
            self.do(
                lambda s: self._accept(s, held, "other", None, base_digest="ff" * 32),
                lambda: self.model.report_of_another_model(held),
            )

    def bad(self, pick: Pick) -> None:
        """Reports what cannot be read."""
        if held := self._held(pick):
            error = FerretError(("contribution.malformed", "request.too_large")[pick.whose % 2], "no")
            self.do(
                lambda s: assignments.refuse(s, held.task.id, error), lambda: held.task.refused.update([error.code])
            )

    def reject(self, pick: Pick) -> None:
        if held := self._held(pick):
            error = FerretError("training.non_finite", "nan")
            self.do(lambda s: assignments.reject(s, held.task.id, held.fence, error), lambda: self.model.reject(held))

    def heartbeat(self, pick: Pick) -> None:
        if held := self._held(pick):

            def change(s: Session) -> str:
                assignments.heartbeat(s, held.task.id, held.fence, FAR)
                return "held"

            self.do(change, lambda: self.model.heartbeat(held))

    def give_back(self, pick: Pick) -> None:
        if held := self._held(pick):
            self.do(lambda s: assignments.give_back(s, held.task.id, held.fence), lambda: self.model.give_back(held))

    def go_on(self, pick: Pick) -> None:
        """What is due when nothing goes wrong: opens, trains one after the other, aggregates, completes."""
        for _ in range(1 + pick.back):
            turn = self.model.turns[-1] if self.model.turns else None
            if self.model.state != "running":
                return
            if turn is None or turn.state in {"committed", "abandoned"}:
                self.coordinate(pick)
            elif turn.state == "frozen":
                self._commit(turn)
            elif turn.count({"pending"}):
                self._train(turn)

    def coordinate(self, pick: Pick) -> None:
        if self.model.committed < self.model.rounds:
            self._open(self.model.committed + 1)
        elif self.model.state != "paused":
            self.do(lambda s: lifecycle.complete(s, self.id).state, lambda: self.model.finish("completed"))

    def aggregate(self, pick: Pick) -> None:
        if turn := self._turn(pick):
            self._commit(turn)

    def close(self, pick: Pick) -> None:
        if turn := self._turn(pick):
            self.do(lambda s: rounds.freeze_if_due(s, turn.id), lambda: self.model.close(turn))

    def sweep(self, pick: Pick) -> None:
        """It may take several transactions: one that dies is as good as none, and the next sweep goes on."""
        self.steps += 1
        reconcile(self.database)
        self.model.sweep()
        waiting = self.model.state == "running" and any(
            task.state == "pending" for turn in self.model.turns if turn.state == "open" for task in turn.tasks
        )
        with self.database.read() as s:
            called = s.scalars(select(OutboxMessage).where(OutboxMessage.task == TaskName.TRAIN)).all()
        assert len([call for call in called if call.sent_at and not call.received_at]) <= 1
        assert called or not waiting, "somebody must be told of work that waits"

    def pause(self, pick: Pick) -> None:
        self.do(lambda s: lifecycle.pause(s, self.id).state, self.model.pause)

    def resume(self, pick: Pick) -> None:
        self.do(lambda s: lifecycle.resume(s, self.id).state, self.model.resume)

    def extend(self, pick: Pick) -> None:
        self.do(lambda s: lifecycle.extend(s, self.id, 1).state, self.model.extend)

    def cancel(self, pick: Pick) -> None:
        if pick.old:  # there is more to see before
            self.do(lambda s: lifecycle.cancel(s, self.id).state, lambda: self.model.finish("cancelled"))

    def dies(self, pick: Pick) -> None:
        """The next transaction's process will, before the commit."""
        self.dying = True

    def runs_out(self, pick: Pick) -> None:
        held = self._held(pick)
        if held is not None and held.task.state == "leased":
            self.lab.age(Assignment, "lease_until", 1, Assignment.id == held.task.id)
            held.task.ran_out = True

    def overdue(self, pick: Pick) -> None:
        if self.model.state == "running" and self.model.turns:
            turn = self.model.turns[-1]
            self.lab.age(Round, "deadline_at", 1, Round.id == turn.id)
            turn.overdue = True

    def rots(self, pick: Pick) -> None:
        """What was accepted cannot be read any more."""
        if turn := self._turn(pick):
            error = FerretError("storage.corrupt", "rotten")
            self.do(lambda s: rounds.give_up(s, turn.id, error), lambda: self.model.give_up(turn))

    @invariant()
    def both_are_alike(self) -> None:
        with self.database.read() as s:
            experiment = s.get_one(Experiment, self.id)
            found = experiment.state, experiment.round, experiment.rounds, experiment.digest
            assert found == (self.model.state, self.model.committed, self.model.rounds, self.model.digest)
            assert s.scalars(select(Event.seq).order_by(Event.seq)).all() == [*range(1, experiment.last_event_seq + 1)]
            committed = s.scalars(select(LedgerEntry.round).order_by(LedgerEntry.round)).all()
            assert committed == [*range(1, self.model.committed + 1)]
            stored = s.scalars(select(Round).order_by(Round.number, Round.attempt)).all()
            assert len(stored) == len(self.model.turns)
            for round_, turn in zip(stored, self.model.turns, strict=True):
                self._compare(s, round_, turn)

    def teardown(self) -> None:
        with self.database.begin() as s:
            if not s.get_one(Experiment, self.id).state.finished:
                lifecycle.cancel(s, self.id)
            lifecycle.delete(s, self.id)
            counts = {
                name: s.scalars(select(func.count()).select_from(table)).one()
                for name, table in Base.metadata.tables.items()
            }
            firsts = {"users": 0, "projects": 0}  # come by migrations
            assert counts | firsts == dict.fromkeys(counts, 0)

    def _begin(self) -> None:
        """The next of the plans, which take turns."""
        self.plans.append(plan := self.plans.pop(0))
        needed = max(1, plan.asked - plan.spare)
        quorum = max(1, math.ceil(plan.quorum * needed))
        rules = {"quorum": plan.quorum, "attempts": plan.attempts}
        self.id = self.lab.start(rounds=2, round=rules).id
        self.model = Model(plan.asked, needed, quorum, plan.attempts, rounds=2)
        self.holds.clear()
        self.over = 0
        self._open(1)

    def do(self, change: Callable[[Session], Any], expected: Callable[[], Any]) -> bool:
        """One transaction, and the same in the model unless the process dies; False then."""
        self.steps += 1
        try:
            with self.database.begin() as s:
                outcome = change(s)
                if self.dying:
                    raise Died
        except FerretError as error:
            outcome = error.code
        except Died:
            self.dying = False
            return False
        assert outcome == expected()
        return True

    def _train(self, turn: Turn) -> None:
        """A whole task, from the lease to the report."""
        task = next(task for task in turn.tasks if task.state == "pending")
        if self._lease(turn, task) and task.state == "leased":
            self._report(self.holds[-1], f"{task.id}:{task.fence}", None)

    def _report(self, held: Held, digest: str, key: str | None) -> None:
        self.do(lambda s: self._accept(s, held, digest, key), lambda: self.model.report(held, digest, key))

    def _commit(self, turn: Turn) -> None:
        digest = f"{self.steps:064}"
        self.do(lambda s: self.lab.commit_in(s, turn, digest), lambda: self.model.commit(turn, digest))

    def _open(self, number: int) -> None:
        def change(s: Session) -> tuple[int, int]:
            experiment = s.get_one(Experiment, self.id)
            names = [f"client-{i}" for i in range(self.model.asked)]
            tasks = [(self.lab.task(experiment, number, name), ParticipantKind.SIMULATED, None) for name in names]
            opened = rounds.open_round(s, self.id, number, tasks, FAR, 100, self.model.needed)
            return opened.number, opened.attempt

        if self.do(change, self.model.open) and self.model.turns:
            self._learn_ids()

    def _lease(self, turn: Turn, task: Task) -> bool:
        """Tries to; False if the process died."""

        def change(s: Session) -> int | None:
            leased = assignments.lease(s, task.id, FAR)
            return leased.fence if leased else None

        if not self.do(change, lambda: self.model.lease(turn, task)):
            return False
        if task.state == "leased":
            self.holds.append(Held(turn, task, task.fence))
        return True

    def _accept(self, s: Session, held: Held, digest: str, key: str | None, **changes: Any) -> str:
        sealed = self.lab.sealed(s.get_one(Assignment, held.task.id), digest, **changes)._replace(pieces=[b"1"])
        return accept(
            s, ContributionOffer(held.task.id, held.fence, sealed, LocalCost(1.0), idempotency_key=key)
        ).digest

    def _compare(self, s: Session, round_: Round, turn: Turn) -> None:
        assert (round_.number, round_.attempt, round_.base_digest) == (turn.number, turn.attempt, turn.base)
        assert round_.state == turn.state
        accepted = [(task.participant, task.digest) for task in turn.tasks if task.digest is not None]
        stored = [(row.participant, row.digest) for row in contributions.of_round(s, round_.id)]
        assert stored == accepted
        assert round_.bytes_up == len(accepted)
        if turn.state in {"frozen", "committed"}:
            assert round_.contributions_digest == contributions_digest(accepted)
        if turn.state == "frozen":  # an experiment that is over calls for nothing
            assert _messages(s, TaskName.AGGREGATE, [round_.id])
        query = select(Assignment).where(Assignment.round_id == round_.id).order_by(Assignment.participant)
        rows = s.scalars(query).all()
        assert [(row.state, row.fence) for row in rows] == [(task.state, task.fence) for task in turn.tasks]
        refused = s.execute(
            select(Rejection.assignment_id, Rejection.code, Rejection.count).where(
                Rejection.assignment_id.in_([task.id for task in turn.tasks])
            )
        )
        expected = {(task.id, code, count) for task in turn.tasks for code, count in task.refused.items()}
        assert {tuple(row) for row in refused} == expected

    def _learn_ids(self) -> None:
        """The model's newest round gets the engine's ids."""
        turn = self.model.turns[-1]
        query = select(Round.id).where(Round.number == turn.number, Round.attempt == turn.attempt)
        with self.database.read() as s:
            turn.id = s.scalars(query).one()
            ids = dict(
                s.execute(select(Assignment.participant, Assignment.id).where(Assignment.round_id == turn.id)).all()
            )
        for task in turn.tasks:
            task.id = ids[task.participant]

    def _turn(self, pick: Pick) -> Turn | None:
        """Mostly the newest."""
        turns = self.model.turns
        return turns[-1 - (pick.back % len(turns) if pick.old else 0)] if turns else None

    def _held(self, pick: Pick) -> Held | None:
        """One that was leased and never reported, unless an old one is wanted."""
        at_work = [held for held in self.holds if (held.task.state, held.task.fence) == ("leased", held.fence)]
        known = self.holds if pick.old or not at_work else at_work
        return known[-1 - pick.back % len(known)] if known else None


def _messages(s: Session, task: TaskName, arguments: list[str]) -> Counter[str]:
    query = select(OutboxMessage.argument).where(OutboxMessage.task == task, OutboxMessage.argument.in_(arguments))
    return Counter(s.scalars(query))


@pytest.mark.timeout(0 if EXAMPLES else 300)
def test_the_engine_and_the_model_stay_alike(database: Database, lab: Any, amount: Callable[[int, int], int]) -> None:
    histories = settings(PROFILE, max_examples=int(EXAMPLES or amount(4, 30)))
    run_state_machine_as_test(lambda: Machine(database, lab), settings=histories)
