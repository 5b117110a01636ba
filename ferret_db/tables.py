"""The tables. Names, states and sizes are as in ``ferret_core.protocol``; sizes are in bytes, times in UTC."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Enum,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column
from sqlalchemy.types import TypeEngine

from ferret_core.protocol.resources.alerts import AlertKind
from ferret_core.protocol.roles import Role
from ferret_core.protocol.states import (
    AssignmentState,
    ExperimentState,
    ParticipantKind,
    ParticipantState,
    RoundState,
    SumStage,
)
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.clock import UtcDateTime, utcnow


def _stored(states: type[StrEnum]) -> Enum:
    """Returns a type stored as text, so that a new member needs no migration."""
    return Enum(states, native_enum=False, create_constraint=False, length=32, values_callable=_texts)


def _texts(states: type[StrEnum]) -> list[str]:
    return [state.value for state in states]


_DOCUMENT: TypeEngine[Any] = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


class Base(MappedAsDataclass, DeclarativeBase, kw_only=True, eq=False):
    metadata: ClassVar[MetaData] = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text().with_variant(Text(collation="C"), "postgresql"),  # sorts by code point, as SQLite and Python do
        int: BigInteger().with_variant(Integer(), "sqlite"),  # SQLite's INTEGER has 64 bits, and only it autoincrements
        datetime: UtcDateTime(),
        dict[str, Any]: _DOCUMENT,
        dict[str, list[int]]: _DOCUMENT,
        list[str]: _DOCUMENT,
        list[dict[str, Any]]: _DOCUMENT,
        **{states: _stored(states) for states in (ExperimentState, RoundState, AssignmentState, ParticipantKind, Role)},
        TaskName: _stored(TaskName),
        Queue: _stored(Queue),
        SumStage: _stored(SumStage),
        AlertKind: _stored(AlertKind),
    }


def new_id(prefix: str) -> str:
    """Returns a new id with the prefix of its kind, e.g. ``exp_5f0c9f6a3b1d2e47``."""
    return f"{prefix}_{secrets.token_hex(8)}"


def _ids(prefix: str) -> Callable[[], str]:
    return lambda: new_id(prefix)


ExperimentId = Annotated[str, mapped_column(ForeignKey("experiments.id"))]
RoundId = Annotated[str, mapped_column(ForeignKey("rounds.id"))]
AssignmentId = Annotated[str, mapped_column(ForeignKey("assignments.id"))]
ParticipantId = Annotated[str, mapped_column(ForeignKey("participants.id"))]
UserId = Annotated[str, mapped_column(ForeignKey("users.id"))]
ProjectName = Annotated[str, mapped_column(ForeignKey("projects.name"))]

FIRST_PROJECT = "default"
"""The project that every installation has, the default of new experiments."""


class Project(Base, kw_only=True):
    """Experiments that belong together, with the users who see them.

    ``models`` and ``data`` are the ones that its experiments may use, as in ``ferret_core.protocol.registry``; None:
    all that the service reads.
    """

    __tablename__ = "projects"

    name: Mapped[str] = mapped_column(primary_key=True)
    description: Mapped[str] = mapped_column(default="")
    models: Mapped[list[dict[str, Any]] | None] = mapped_column(default=None)
    data: Mapped[list[str] | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Membership(Base, kw_only=True):
    """A user's membership in a project, which makes its experiments visible. The user's role grants the permissions."""

    __tablename__ = "memberships"
    __table_args__ = (Index(None, "user_id"),)

    project: Mapped[ProjectName] = mapped_column(primary_key=True)
    user_id: Mapped[UserId] = mapped_column(primary_key=True)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Alert(Base, kw_only=True):
    """An alert on a project's experiments, or on ``experiment_id`` alone, with an address for webhooks or e-mail.

    ``secret`` signs webhooks. An alert that is not ``enabled`` sends nothing.
    """

    __tablename__ = "alerts"
    __table_args__ = (Index(None, "project"), Index(None, "experiment_id"))

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("alr"))
    project: Mapped[ProjectName]
    kind: Mapped[AlertKind]
    address: Mapped[str]
    events: Mapped[list[str]]
    experiment_id: Mapped[str | None] = mapped_column(ForeignKey("experiments.id"), default=None)
    enabled: Mapped[bool] = mapped_column(default=True)
    secret: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class AlertDelivery(Base, kw_only=True):
    """One message of an alert, stored with the event that it reports.

    It is due at ``due_at``, which the sender postpones first. ``due_at`` is None once the message was delivered
    (``delivered_at``) or given up.
    """

    __tablename__ = "alert_deliveries"
    __table_args__ = (Index(None, "due_at"), Index(None, "alert_id", "created_at"))

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("msg"))
    alert_id: Mapped[str] = mapped_column(ForeignKey("alerts.id"))
    project: Mapped[ProjectName]
    event: Mapped[str]
    message: Mapped[dict[str, Any]]
    attempts: Mapped[int] = mapped_column(default=0)
    status: Mapped[int | None] = mapped_column(default=None)
    error: Mapped[str | None] = mapped_column(default=None)
    due_at: Mapped[datetime | None]
    tried_at: Mapped[datetime | None] = mapped_column(default=None)
    delivered_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Experiment(Base, kw_only=True):
    """An experiment.

    ``round`` is the last committed round (0: none yet) and ``digest`` its model's. ``cloned_from`` is informative: the
    experiment it names may be gone. ``name`` is the current display name; ``spec`` keeps the submitted one, since the
    ledger holds its digest; once the base model is loaded, it names the template that replaced ``auto``. Experiments
    of one ``seed_group`` differ in the seed only. ``stopped`` is a ``ferret_core.rounds.early_stopping.EarlyStop`` if
    it ended before its last round; evaluations of rounds up to ``patience_from_round`` do not count towards the next.
    ``stall_alerted_at`` is when its stall was reported.
    """

    __tablename__ = "experiments"
    __table_args__ = (
        Index(None, "created_at", "id"),
        Index(None, "state", "edge_participants", "created_at"),
        Index(None, "seed_group"),
        UniqueConstraint("project", "idempotency_key"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("exp"))
    project: Mapped[ProjectName] = mapped_column(default=FIRST_PROJECT)
    name: Mapped[str]
    notes: Mapped[str] = mapped_column(default="")
    priority: Mapped[int] = mapped_column(default=LEAST_PRIORITY)
    state: Mapped[ExperimentState] = mapped_column(default=ExperimentState.QUEUED)
    version: Mapped[int] = mapped_column(default=1)
    spec: Mapped[dict[str, Any]]
    seed_group: Mapped[str]
    algorithm: Mapped[str]
    dataset: Mapped[str]
    error: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    stopped: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    patience_from_round: Mapped[int] = mapped_column(default=0)
    idempotency_key: Mapped[str | None] = mapped_column(default=None)
    idempotency_digest: Mapped[str | None] = mapped_column(default=None)
    rounds: Mapped[int]
    round: Mapped[int] = mapped_column(default=0)
    participants: Mapped[int]
    edge_participants: Mapped[int] = mapped_column(default=0)
    base_digest: Mapped[str | None] = mapped_column(default=None)
    digest: Mapped[str | None] = mapped_column(default=None)
    shapes: Mapped[dict[str, list[int]] | None] = mapped_column(default=None)
    last_event_seq: Mapped[int] = mapped_column(default=0)
    cloned_from: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    started_at: Mapped[datetime | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    archived_at: Mapped[datetime | None] = mapped_column(default=None)
    stall_alerted_at: Mapped[datetime | None] = mapped_column(default=None)


class ExperimentTag(Base, kw_only=True):
    """A tag of an experiment. Tags are equal if their keys are (``ferret_core.protocol.tags_and_notes``)."""

    __tablename__ = "experiment_tags"
    __table_args__ = (Index(None, "key", "experiment_id"),)

    experiment_id: Mapped[ExperimentId] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    tag: Mapped[str]


class Round(Base, kw_only=True):
    """A round. ``deadline_at`` is in the service's time (``repositories/service_clock.py``), other times in the
    database's.

    ``population`` names the real participants that a round is drawn from while it opens. ``bytes_up`` and
    ``bytes_down`` are sums over the round's participants. ``required_contributions`` close the round early if it has
    more assignments. ``paused_seconds_left`` to the deadline are stored while the experiment is paused. A round that
    is a secure sum has a ``stage``, which ends at ``stage_until`` in the service's time.
    """

    __tablename__ = "rounds"
    __table_args__ = (UniqueConstraint("experiment_id", "number", "attempt"), Index(None, "state"))

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("rnd"))
    experiment_id: Mapped[ExperimentId]
    number: Mapped[int]
    attempt: Mapped[int] = mapped_column(default=1)
    state: Mapped[RoundState] = mapped_column(default=RoundState.OPEN)
    version: Mapped[int] = mapped_column(default=1)
    base_digest: Mapped[str]
    digest: Mapped[str | None] = mapped_column(default=None)
    contributions_digest: Mapped[str | None] = mapped_column(default=None)
    opened_at: Mapped[datetime]
    deadline_at: Mapped[datetime]
    paused_seconds_left: Mapped[float | None] = mapped_column(default=None)
    required_contributions: Mapped[int | None] = mapped_column(default=None)
    population: Mapped[list[str] | None] = mapped_column(default=None)
    stage: Mapped[SumStage | None] = mapped_column(default=None)
    stage_until: Mapped[datetime | None] = mapped_column(default=None)
    frozen_at: Mapped[datetime | None] = mapped_column(default=None)
    committed_at: Mapped[datetime | None] = mapped_column(default=None)
    evaluated_at: Mapped[datetime | None] = mapped_column(default=None)
    bytes_up: Mapped[int] = mapped_column(default=0)
    bytes_down: Mapped[int] = mapped_column(default=0)
    error: Mapped[dict[str, Any] | None] = mapped_column(default=None)


class Assignment(Base, kw_only=True):
    """One participant's task in one round. ``fence`` grows with every lease; earlier holders are refused."""

    __tablename__ = "assignments"
    __table_args__ = (
        UniqueConstraint("round_id", "participant"),
        Index(None, "experiment_id", "round"),
        Index(None, "round_id", "state", "id"),
        Index(None, "state"),
        Index(None, "participant_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("asg"))
    experiment_id: Mapped[ExperimentId]
    round_id: Mapped[RoundId]
    round: Mapped[int]
    participant: Mapped[str]
    kind: Mapped[ParticipantKind]
    participant_id: Mapped[ParticipantId | None] = mapped_column(default=None)
    state: Mapped[AssignmentState] = mapped_column(default=AssignmentState.PENDING)
    version: Mapped[int] = mapped_column(default=1)
    attempt: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None] = mapped_column(default=None)
    task: Mapped[dict[str, Any]]
    error: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    seconds: Mapped[float | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    updated_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow(), onupdate=utcnow())


class Contribution(Base, kw_only=True):
    """An accepted upload; a refused one is a :class:`Rejection`. The blob is stored under ``digest``.

    ``cost`` is a ``ferret_core.rounds.cost.LocalCost``. ``memory_digest`` names what a simulated client keeps until its
    next round; real participants keep it themselves and sign their contributions with ``public_key``. ``factor`` is
    what the round multiplied its update by, if it was clipped.
    """

    __tablename__ = "contributions"
    __table_args__ = (
        UniqueConstraint("assignment_id"),
        UniqueConstraint("round_id", "participant"),
        Index(None, "experiment_id", "participant"),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("con"))
    experiment_id: Mapped[ExperimentId]
    round_id: Mapped[RoundId]
    round: Mapped[int]
    participant: Mapped[str]
    assignment_id: Mapped[AssignmentId]
    digest: Mapped[str]
    size: Mapped[int]
    examples: Mapped[int]
    metrics: Mapped[dict[str, Any]]
    cost: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    bytes_down: Mapped[int]
    memory_digest: Mapped[str | None] = mapped_column(default=None)
    factor: Mapped[float | None] = mapped_column(default=None)
    public_key: Mapped[str | None] = mapped_column(default=None)
    signature: Mapped[str | None] = mapped_column(default=None)
    idempotency_key: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Prekey(Base, kw_only=True):
    """The public halves of a participant's one-time keys (``ferret_core.secure.prekeys``), with its signature.

    Keys that a roster has are ``used``. They stay, so that no later roster has them.
    """

    __tablename__ = "prekeys"
    __table_args__ = (Index(None, "experiment_id", "used"),)

    participant_id: Mapped[ParticipantId] = mapped_column(primary_key=True)
    mask: Mapped[str] = mapped_column(primary_key=True)
    experiment_id: Mapped[ExperimentId]
    share: Mapped[str]
    signature: Mapped[str]
    used: Mapped[bool] = mapped_column(default=False)


class SecureSum(Base, kw_only=True):
    """The roster of a group of a round that is a secure sum, and the transcript once the round is committed."""

    __tablename__ = "secure_sums"

    round_id: Mapped[RoundId] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    experiment_id: Mapped[ExperimentId]
    # Plain JSON, as in the ledger: the hashed text must be restored exactly.
    roster: Mapped[dict[str, Any]] = mapped_column(JSON())
    transcript: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), default=None)


class SecureMessage(Base, kw_only=True):
    """A member's message to the secure sum of a round: its deal, its signature or its shares.

    ``kind`` is the stage of the message. Once the round is committed or abandoned, its messages are deleted.
    """

    __tablename__ = "secure_messages"

    round_id: Mapped[RoundId] = mapped_column(primary_key=True)
    participant: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[SumStage] = mapped_column(primary_key=True)
    experiment_id: Mapped[ExperimentId]
    body: Mapped[bytes] = mapped_column(LargeBinary())


class NoisedSum(Base, kw_only=True):
    """The packed sum of a round's contributions with the server's noise for records, from its first aggregation on.

    Another draw of noise on the same contributions would reveal more than their privacy allows, so there is one.
    """

    __tablename__ = "noised_sums"

    round_id: Mapped[RoundId] = mapped_column(primary_key=True)
    experiment_id: Mapped[ExperimentId]
    body: Mapped[bytes] = mapped_column(LargeBinary())


class Rejection(Base, kw_only=True):
    """The uploads for one assignment that were refused for one reason: their number, and the last of them."""

    __tablename__ = "rejections"
    __table_args__ = (Index(None, "experiment_id", "round"),)

    assignment_id: Mapped[AssignmentId] = mapped_column(primary_key=True)
    code: Mapped[str] = mapped_column(primary_key=True)
    experiment_id: Mapped[ExperimentId]
    round: Mapped[int]
    participant: Mapped[str]
    detail: Mapped[str]
    count: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    updated_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow(), onupdate=utcnow())


class Metric(Base, kw_only=True):
    """One point of one curve; round 0 is the base model."""

    __tablename__ = "metrics"

    experiment_id: Mapped[ExperimentId] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Update(Base, kw_only=True):
    """``ferret_core.aggregation.statistics.schema`` of a round; separate, so that rounds are listed without it."""

    __tablename__ = "updates"

    experiment_id: Mapped[ExperimentId] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True)
    statistics: Mapped[dict[str, Any]]


class LedgerEntry(Base, kw_only=True):
    """One replayable round."""

    __tablename__ = "ledger"

    experiment_id: Mapped[ExperimentId] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True)
    # Plain JSON keeps the text; JSONB would turn 1e16 into an integer and change the record's hash.
    record: Mapped[dict[str, Any]] = mapped_column(JSON())
    hash: Mapped[str]
    update_digest: Mapped[str]
    update_size: Mapped[int]


class Artifact(Base, kw_only=True):
    """A downloadable file. ``location`` is its path in the storage."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("experiment_id", "round", "kind", "name"),)

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("art"))
    experiment_id: Mapped[ExperimentId]
    round: Mapped[int]
    kind: Mapped[str]
    name: Mapped[str]
    size: Mapped[int]
    digest: Mapped[str]
    location: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class Event(Base, kw_only=True):
    """An event, numbered without gaps per experiment in the order of the commits."""

    __tablename__ = "events"

    experiment_id: Mapped[ExperimentId] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    type: Mapped[str]
    round: Mapped[int | None]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class OutboxMessage(Base, kw_only=True):
    """A call of a task, stored with the change that needs it.

    It waits, is at the broker since ``sent_at``, and with a worker since ``received_at``. Repeated after that, it waits
    again.
    """

    __tablename__ = "outbox"
    __table_args__ = (
        UniqueConstraint("task", "argument"),
        Index(None, "experiment_id", "queue"),
        Index(None, "sent_at"),
        Index(None, "received_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True, init=False)
    task: Mapped[TaskName]
    argument: Mapped[str]
    queue: Mapped[Queue]
    experiment_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    sent_at: Mapped[datetime | None] = mapped_column(init=False, default=None)
    received_at: Mapped[datetime | None] = mapped_column(init=False, default=None)
    attempts: Mapped[int] = mapped_column(init=False, default=0)


class TaskRun(Base, kw_only=True):
    """A task that has begun and not yet succeeded: counted before it runs, so that one that kills its worker counts.

    ``worker`` is the one working on it, empty after a failure. ``error`` is the last failure, empty if the worker
    vanished. After ``given_up_at`` it is not run again. ``reschedule_requested``: another message for it arrived
    meanwhile, to be sent again when it ends.
    """

    __tablename__ = "task_runs"
    __table_args__ = (Index(None, "given_up_at"),)

    task: Mapped[TaskName] = mapped_column(primary_key=True)
    argument: Mapped[str] = mapped_column(primary_key=True)
    experiment_id: Mapped[str | None] = mapped_column(default=None)
    attempts: Mapped[int] = mapped_column(default=1)
    worker: Mapped[str | None] = mapped_column(default=None)
    reschedule_requested: Mapped[bool] = mapped_column(default=False)
    error: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    given_up_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    updated_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow(), onupdate=utcnow())


class Worker(Base, kw_only=True):
    """A worker, alive at ``seen_at``, its work's ``subject``, and when the message that it last took was sent.

    ``bfloat16``: its device is quick at bf16.
    """

    __tablename__ = "workers"
    __table_args__ = (Index(None, "queue", "seen_at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    queue: Mapped[Queue]
    host: Mapped[str]
    pid: Mapped[int]
    device: Mapped[str]
    bfloat16: Mapped[bool] = mapped_column(default=False)
    task: Mapped[TaskName | None] = mapped_column(default=None)
    subject: Mapped[str | None] = mapped_column(default=None)
    message_sent_at: Mapped[datetime | None] = mapped_column(default=None)
    started_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    seen_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class ServiceClock(Base, kw_only=True):
    """The service as a whole, in one row, renewed by the ``leader``, the process that sweeps.

    At ``renewed_at``, in ``epoch``, the service's time was ``service_time``. The broker has been silent since
    ``broker_silent_since``.
    """

    __tablename__ = "service"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    leader: Mapped[str | None]
    epoch: Mapped[int] = mapped_column(default=1)
    renewed_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    service_time: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    broker_silent_since: Mapped[datetime | None] = mapped_column(default=None)


class Installation(Base, kw_only=True):
    """The name of this installation, in one row created when a storage is first used."""

    __tablename__ = "installation"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    name: Mapped[str]


class Participant(Base, kw_only=True):
    """A real participant and the BLAKE3 hash of its token, which is refused since ``revoked_at``.

    People read its ``display_name``; everything else uses ``name``. It signs with the Ed25519 ``public_key``, unless it
    joined without one. ``group`` is that of its code. It is ``pending`` until it is approved. ``enrolment_hash`` is the
    BLAKE3 hash of the code and the idempotency key that it joined with, None without a key.
    """

    __tablename__ = "participants"
    __table_args__ = (UniqueConstraint("experiment_id", "name"), UniqueConstraint("experiment_id", "display_name"))

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("par"))
    experiment_id: Mapped[ExperimentId]
    name: Mapped[str]
    display_name: Mapped[str]
    group: Mapped[str | None] = mapped_column(default=None)
    token_hash: Mapped[str] = mapped_column(unique=True)
    enrolment_hash: Mapped[str | None] = mapped_column(unique=True, default=None)
    public_key: Mapped[str | None] = mapped_column(default=None)
    pending: Mapped[bool] = mapped_column(default=False)
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)
    revocation_reason: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())
    seen_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())

    @property
    def state(self) -> ParticipantState:
        if self.revoked_at is None:
            return ParticipantState.PENDING if self.pending else ParticipantState.ACTIVE
        return ParticipantState.REFUSED if self.pending else ParticipantState.REVOKED


class Enrolment(Base, kw_only=True):
    """A single-use code, stored as its BLAKE3 hash.

    ``used_by`` is the display name of the participant that joined with it, which needs ``approval`` if that is set.
    ``refused`` counts later uses.
    """

    __tablename__ = "enrolments"
    __table_args__ = (Index(None, "experiment_id", "created_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("enr"))
    experiment_id: Mapped[ExperimentId]
    group: Mapped[str | None] = mapped_column(default=None)
    approval: Mapped[bool] = mapped_column(default=False)
    code_hash: Mapped[str] = mapped_column(unique=True)
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    used_by: Mapped[str | None] = mapped_column(default=None)
    revoked_at: Mapped[datetime | None] = mapped_column(default=None)
    refused: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class User(Base, kw_only=True):
    """A user who signs in.

    The id ``admin`` belongs to the holder of the installation's admin token. A user with an ``issuer`` signs in there,
    as ``subject``.
    """

    __tablename__ = "users"
    __table_args__ = (Index(None, "issuer", "subject", unique=True),)

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("usr"))
    name: Mapped[str] = mapped_column(unique=True)
    role: Mapped[Role]
    enabled: Mapped[bool] = mapped_column(default=True)
    password_hash: Mapped[str | None] = mapped_column(default=None)
    issuer: Mapped[str | None] = mapped_column(default=None)
    subject: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


class UserToken(Base, kw_only=True):
    """A user's token, by its BLAKE3 hash. A revoked token has no row.

    A token that was made with another token, or in a session that descends from one, has that as its parent and ends
    with it.
    """

    __tablename__ = "user_tokens"
    __table_args__ = (UniqueConstraint("user_id", "name"), Index(None, "parent_id"))

    id: Mapped[str] = mapped_column(primary_key=True, default_factory=_ids("tok"))
    user_id: Mapped[UserId]
    name: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("user_tokens.id", ondelete="CASCADE"), default=None)
    expires_at: Mapped[datetime | None] = mapped_column(default=None)
    used_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())


SESSION_PREFIX, SESSION_DIGITS = "ses_", 16


def session_name(secret_hash: str) -> str:
    """Returns the public id of a session: a part of the hash, which gives no access."""
    return f"{SESSION_PREFIX}{secret_hash[:SESSION_DIGITS]}"


class BrowserSession(Base, kw_only=True):
    """A browser in which a user is signed in, by the BLAKE3 hash of its cookie, or a sign-in link that can become one.

    ``issuer`` identifies the admin token of the time, and the kind. A session with a link made with a token has that
    ``token_id`` and ends with the token. ``address`` is the network address of the browser, or of the link's maker.
    """

    __tablename__ = "sessions"
    __table_args__ = (Index(None, "expires_at"), Index(None, "token_id"), Index(None, "user_id"))

    secret_hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[UserId]
    issuer: Mapped[str]
    expires_at: Mapped[datetime]
    token_id: Mapped[str | None] = mapped_column(ForeignKey("user_tokens.id", ondelete="CASCADE"), default=None)
    address: Mapped[str | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = mapped_column(init=False, insert_default=utcnow())

    @property
    def id(self) -> str:
        """The session's public id."""
        return session_name(self.secret_hash)


class AuditEntry(Base, kw_only=True):
    """An audited action, numbered without gaps; ``ferret_core.protocol.audit`` defines the chain."""

    __tablename__ = "audit"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    # Plain JSON, as in the ledger: the hashed text must be restored exactly.
    detail: Mapped[dict[str, Any]] = mapped_column(JSON())
    previous: Mapped[str]
    hash: Mapped[str]


class AuditHead(Base, kw_only=True):
    """The end of the audit log, in one row, which every append locks."""

    __tablename__ = "audit_head"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, default=1)
    number: Mapped[int]
    hash: Mapped[str]
