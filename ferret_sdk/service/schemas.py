"""The documents of the REST API as the SDK reads them.

Members that a newer server adds are kept, so ``model_dump`` gives back everything the server said. Nothing of an answer
is used before it was read here: what becomes a path, an address or a header must be spelt as one, numbers that are
waited or reserved for are bounded, and names are safe to show.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.alerts import AlertEvent, AlertKind
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.ids import (
    AlertId,
    ArtifactId,
    AssignmentId,
    Digest,
    EnrolmentId,
    ExperimentId,
    ParticipantId,
    ParticipantName,
    PublicKey,
    SessionId,
    TokenId,
    UserId,
)
from ferret_core.protocol.limits import MAX_PART_BYTES, MAX_ROUNDS
from ferret_core.protocol.priority import LEAST_PRIORITY
from ferret_core.protocol.roles import Role, Scope
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.spec import ExperimentSpec, RoundTask, Strict
from ferret_core.protocol.states import (
    AssignmentState,
    Awaited,
    ExperimentState,
    ParticipantKind,
    ParticipantState,
    RoundState,
)

FINAL_EVENTS = frozenset(f"experiment.{state}" for state in ExperimentState if state.finished)
LONGEST_LEASE = 31 * 24 * 3600

RoundNumber = Annotated[int, Field(ge=0, le=MAX_ROUNDS)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Token = Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,512}$")]
Item = TypeVar("Item", bound="Answered")
_Strict = TypeVar("_Strict", bound=Strict)


def checked(kind: type[_Strict], value: Any) -> _Strict:
    """``value`` of a server's answer as a ``kind``; ``server.unexpected`` names the fields that are none of it."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _unexpected(kind, error) from error


def _unexpected(kind: type[BaseModel], error: ValidationError) -> FerretError:
    return FerretError.of_fields("server.unexpected", field_errors(error, [kind.__name__.lower()]))


class Answered(BaseModel):
    """Something that a server answers."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @classmethod
    def read(cls, value: Any) -> Self:
        """The answer, checked; ``server.unexpected`` names what is not as it must be."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise _unexpected(cls, error) from error


class Page(Answered):
    """A part of a list."""

    items: list[Any]
    next_cursor: str | None = None


class Document(Answered):
    """An answer that ``openapi.json`` describes."""


class Summary(Document):
    """One metric over the rounds so far."""

    first: float | None = None
    last: float | None = None
    best: float | None = None


class Stall(Document):
    """Why an experiment cannot make progress, and in ``detail`` what to do."""

    code: Line
    detail: Words
    since: datetime


class Best(Document):
    """The round with the best value of a metric; 0 is the base model."""

    metric: Line
    round: RoundNumber
    value: float


class Stopped(Document):
    """An experiment ended after ``round`` although it had more; ``detail`` says why."""

    round: RoundNumber
    detail: Words
    best: Best


class Experiment(Document):
    """``round`` is the last committed one; ``bytes_up`` and ``bytes_down`` are sums over all participants so far."""

    id: ExperimentId
    project: Line = "default"
    name: Line
    tags: list[Line] = []
    notes: Words = ""
    priority: int = LEAST_PRIORITY
    state: ExperimentState
    stalled: Stall | None = None
    algorithm: Line
    dataset: Line
    rounds: RoundNumber
    round: RoundNumber
    participants: int = Field(ge=0, lt=2**31)
    spec: dict[str, Any]
    error: dict[str, Any] | None = None
    stopped: Stopped | None = None
    best: Best | None = None
    better: Literal["last", "average"] | None = None
    base_digest: Digest | None = None
    digest: Digest | None = None
    metrics: dict[Line, Summary] = {}
    bytes_up: int = 0
    bytes_down: int = 0
    cloned_from: ExperimentId | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    archived_at: datetime | None = None

    @property
    def shown_state(self) -> str:
        """The state as people read it: ``stalled`` where the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value

    def specification(self) -> ExperimentSpec:
        """The specification, checked; ``server.unexpected`` if it is none."""
        return checked(ExperimentSpec, self.spec)


class ListedExperiment(Document):
    """What a list tells of an experiment; ``stalled`` is the code of why it cannot make progress. ``learning_rate`` is
    the local one, and ``estimated_seconds_left`` is None where it is not known."""

    id: ExperimentId
    project: Line = "default"
    name: Line
    tags: list[Line] = []
    state: ExperimentState
    stalled: Line | None = None
    algorithm: Line
    dataset: Line
    rounds: RoundNumber
    round: RoundNumber
    participants: int = Field(ge=0, lt=2**31)
    seed: int | None = None
    seed_group: Line = ""
    K: int | None = None
    bytes_per_round: int | None = None
    learning_rate: float | None = None
    metrics: dict[Line, Summary] = {}
    bytes_up: int = 0
    bytes_down: int = 0
    bytes_per_upload: float | None = None
    error: dict[str, Any] | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    archived_at: datetime | None = None
    estimated_seconds_left: float | None = None

    @property
    def shown_state(self) -> str:
        """The state as people read it: ``stalled`` where the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class Spread(Document):
    """Of ``count`` values; ``sd`` is that of a sample (n - 1), None for a single value."""

    mean: float
    sd: float | None = None
    count: int


class MetricSpread(Document):
    """A metric over the experiments of a group; ``best`` is None where no round is better than another."""

    last: Spread
    best: Spread | None = None


class ExperimentGroup(Document):
    """Experiments that differ in name and seed only; ``newest`` was submitted last, bytes are sums over them."""

    key: Line
    count: int
    states: dict[ExperimentState, int]
    metrics: dict[Line, MetricSpread] = {}
    bytes_up: int = 0
    bytes_down: int = 0
    newest: ListedExperiment


class Round(Document):
    """One round; the byte counts are sums over its participants."""

    number: int
    attempt: int
    state: RoundState
    base_digest: Digest
    digest: Digest | None = None
    participants: int
    needed: int | None = None
    accepted: int
    rejected: int
    bytes_up: int = 0
    bytes_down: int = 0
    metrics: dict[str, float] = {}
    error: dict[str, Any] | None = None


class ContributionInfo(Document):
    """One participant's part in one round: leased and rejected ones show too."""

    participant: Line
    display_name: Line
    kind: ParticipantKind
    round: int
    attempt: int = 1
    state: AssignmentState
    digest: Digest | None = None
    size: int | None = None
    seconds: float | None = None
    error: dict[str, Any] | None = None


class Rejection(Document):
    """Uploads of one participant in one round that were refused for one reason: how many, and the last's detail."""

    participant: Line
    display_name: Line
    round: int
    code: Line
    detail: Words
    count: int


class Point(Document):
    """A metric's value after a round, None for what is no finite number; ``bytes_up`` is what all participants had sent
    until then."""

    round: int
    value: float | None
    time: datetime
    bytes_up: int = 0


class Series(Document):
    """One metric over the rounds, in order."""

    name: Line
    points: list[Point]


class Metrics(Document):
    series: list[Series]


class Artifact(Document):
    """A file of a checkpoint of ``size`` bytes; ``digest`` is their BLAKE3. ``best`` marks the best that is kept."""

    id: ArtifactId
    kind: str
    round: RoundNumber
    best: bool = False
    name: str
    size: Bytes
    digest: Digest


class LedgerItem(Document):
    """One ledger record as JSON, its link in the hash chain, and the bytes of the update it names."""

    record: dict[str, Any]
    hash: Digest
    update_size: Bytes

    def parsed(self) -> LedgerRecord:
        """The record, checked; ``server.unexpected`` if it is none."""
        return checked(LedgerRecord, self.record)


class Event(Document):
    """Something that happened; ``seq`` counts up by one within an experiment."""

    seq: int = Field(ge=0, lt=2**63)
    type: Line
    round: RoundNumber | None = None
    data: dict[str, Any] = {}
    time: datetime

    @property
    def final(self) -> bool:
        return self.type in FINAL_EVENTS


class CatalogEntry(Document):
    """An algorithm, dataset or model that can be chosen; ``schema`` is the JSON Schema of its options."""

    name: Line
    title: Line = ""
    description: Words = ""


class Info(Document):
    name: Line
    version: Line
    instance: Line
    database: Line
    storage: Line


class PartStatus(Document):
    """Whether a part of the service can be used, and if not, why and what to do."""

    ready: bool
    detail: Words | None = None


class Readiness(Document):
    """Whether all parts can be used."""

    ready: bool
    database: PartStatus
    migrations: PartStatus
    broker: PartStatus
    storage: PartStatus


class DatabaseFacts(Document):
    """The service's database; ``size`` in bytes."""

    kind: Line
    revision: Line | None = None
    size: Bytes


class StorageFacts(Document):
    """Where contributions and checkpoints are."""

    kind: Line
    place: Line


class Disk(Document):
    """The disk that the server's home is on, in bytes."""

    total: Bytes
    free: Bytes


class Backlog(Document):
    """Work that nobody has in hand, and since when the oldest of it waits."""

    waiting: int
    oldest: AwareDatetime | None = None


class QueueFacts(Backlog):
    """A queue, and how many workers are alive that work on it; ``messages`` are None without a broker."""

    queue: Line
    workers: int
    messages: int | None = None


class WorkerFacts(Document):
    """A worker process that was alive within the last day; ``task`` is None while it is idle."""

    id: Line
    queue: Line
    host: Line
    pid: int
    device: Line
    alive: bool
    started_at: AwareDatetime
    seen_at: AwareDatetime
    task: Line | None = None
    subject: Line | None = None
    experiment: ExperimentId | None = None


class System(Document):
    """How a service is; all times by its database's clock."""

    version: Line
    time: AwareDatetime
    parts: Readiness
    broker_silent_since: AwareDatetime | None = None
    database: DatabaseFacts
    storage: StorageFacts
    disk: Disk
    queues: list[QueueFacts]
    unsent: Backlog
    given_up: int
    experiments: dict[Line, int]
    workers: list[WorkerFacts]


class EnrolmentCode(Document):
    """A one-time code, and the command that a participant runs, which then asks for it."""

    id: EnrolmentId
    group: Line | None = None
    approval: bool = False
    code: Line
    expires_at: datetime
    command: Line


class CodeInfo(Document):
    """What became of a one-time code; ``used_by`` is a display name, ``refused`` how often the code was shown again
    after it was used."""

    id: EnrolmentId
    group: Line | None = None
    approval: bool = False
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: Line | None = None
    revoked_at: datetime | None = None
    refused: int = Field(ge=0, lt=2**63)


class ParticipantInfo(Document):
    """A real participant of an experiment. People read its ``display_name``, everything else knows it by ``name``."""

    id: ParticipantId
    name: ParticipantName
    display_name: Line
    group: Line | None = None
    public_key: PublicKey | None = None
    state: ParticipantState
    created_at: datetime
    seen_at: datetime
    revoked_at: datetime | None = None
    revoked_for: Words | None = None


class Enrolled(Document):
    """A participant's place in an experiment, and the token that proves it."""

    participant: ParticipantId
    name: ParticipantName
    display_name: DisplayName
    experiment: ExperimentId
    token: Token


class Revoked(Document):
    """How many of a group a request revoked."""

    revoked: int = Field(ge=0, lt=2**63)


class Lease(Document):
    """An assignment held until its lease ends; results must carry ``fence``, and a contribution of more than
    ``part_bytes`` is sent in parts of as many."""

    id: AssignmentId
    fence: int = Field(ge=0, lt=2**31)
    lease_seconds: float = Field(gt=0, le=LONGEST_LEASE)
    task: RoundTask
    part_bytes: int | None = Field(default=None, ge=1 << 10, le=MAX_PART_BYTES)


class Arrived(Document):
    """How many bytes of a contribution the server has; the next part begins there."""

    offset: Bytes


class Accepted(Document):
    """What the server says of a contribution that it has accepted and stored."""

    digest: Digest


class Waiting(Document):
    """What a participant without an assignment waits for; ``done`` of ``total`` have joined or contributed."""

    awaited: Awaited
    round: RoundNumber
    done: int = Field(ge=0, lt=2**31)
    total: int = Field(ge=0, lt=2**31)


class Poll(Document):
    """The answer to a participant that asks for work."""

    experiment_state: ExperimentState
    retry_after_seconds: float = Field(ge=0, allow_inf_nan=False)
    assignment: Lease | None = None
    waiting: Waiting | None = None


class Audited(Document):
    """An entry of the audit log, as it was answered: whether it is true, its hash says."""

    number: Annotated[int, Field(ge=1, lt=2**63)]
    time: AwareDatetime
    actor: Line
    action: Line
    subject: Line
    detail: dict[str, Any]
    previous: str
    hash: str


class Ended(Document):
    """Where the audit log ends."""

    number: Annotated[int, Field(ge=0, lt=2**63)]
    hash: Digest | Literal[""]


class SignInLink(Document):
    """Signs one browser in."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s]{1,2000}$")]
    expires_at: AwareDatetime


class User(Document):
    """Somebody who signs in."""

    id: UserId
    name: Line
    role: Role
    enabled: bool
    issuer: Line | None = None
    created_at: AwareDatetime


class AllowedModel(Document):
    """A model that a project's experiments may tune; without a revision, every one of a hub name."""

    source: Line
    revision: Line | None = None

    @classmethod
    def parse(cls, text: str) -> AllowedModel:
        """Reads ``SOURCE`` or ``SOURCE@REVISION``, as ``str`` writes it."""
        source, _, revision = text.partition("@")
        return cls(source=source, revision=revision or None)

    def __str__(self) -> str:
        return f"{self.source}@{self.revision}" if self.revision else self.source


class Project(Document):
    """Experiments that belong together; None for ``models`` or ``data`` allows all that the server reads."""

    name: Line
    description: Line
    models: list[AllowedModel] | None
    data: list[Line] | None
    created_at: AwareDatetime


class Delivery(Document):
    """A message of an alert; ``id`` is the same at each attempt."""

    id: Line
    event: Line
    state: Literal["waiting", "delivered", "failed"]
    attempts: int
    status: int | None = None
    error: Words | None = None
    created_at: datetime
    tried_at: datetime | None = None
    due_at: datetime | None = None


class Alert(Document):
    """Who is told what happens to a project's experiments, or to ``experiment_id`` alone; of a webhook, ``address`` has
    no path. One that is not ``enabled`` is told nothing."""

    id: AlertId
    project: Line
    kind: AlertKind
    address: Line
    events: list[AlertEvent]
    experiment_id: ExperimentId | None = None
    enabled: bool = True
    created_at: datetime
    deliveries: list[Delivery] = []


class NewAlert(Alert):
    """An alert with the key of a webhook's signatures, which is shown this once."""

    secret: Token | None = None


class Member(Document):
    """A user who sees a project."""

    id: UserId
    name: Line
    role: Role


class Me(Document):
    """Who is asking, and what the token that was shown is good for."""

    id: UserId
    name: Line
    role: Role
    scopes: list[Scope]
    has_password: bool
    projects: list[Line]


class UserToken(Document):
    """A user's token, without its text."""

    id: TokenId
    name: Line
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = None
    used_at: AwareDatetime | None = None


class NewUserToken(UserToken):
    """A token that was made, with its text, which is shown this once."""

    token: Token


class BrowserSession(Document):
    """A browser in which a user is signed in, or with ``link`` a sign-in link that nobody has used yet. ``address`` is
    that of the browser, or of the link's maker; ``token`` is the id of the token that it ends with."""

    id: SessionId
    link: bool
    current: bool
    address: Line | None = None
    token: TokenId | None = None
    created_at: AwareDatetime
    expires_at: AwareDatetime
