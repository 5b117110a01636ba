"""The documents of the REST API as the SDK reads them.

Members that a newer server adds are kept, so ``model_dump`` gives back everything the server said.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState

FINAL_EVENTS = frozenset(f"experiment.{state}" for state in ExperimentState if state.finished)


class Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class Summary(Document):
    """One metric over the rounds so far."""

    first: float | None = None
    last: float | None = None
    best: float | None = None


class Stall(Document):
    """Why an experiment cannot make progress, and in ``detail`` what to do."""

    code: str
    detail: str
    since: datetime


class Experiment(Document):
    """``round`` is the last committed one; ``bytes_up`` and ``bytes_down`` are sums over all participants so far."""

    id: str
    name: str
    state: ExperimentState
    stalled: Stall | None = None
    algorithm: str
    dataset: str
    rounds: int
    round: int
    participants: int
    spec: dict[str, Any]
    error: dict[str, Any] | None = None
    base_digest: str | None = None
    digest: str | None = None
    metrics: dict[str, Summary] = {}
    bytes_up: int = 0
    bytes_down: int = 0
    cloned_from: str | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    archived_at: datetime | None = None

    @property
    def shown_state(self) -> str:
        """The state as people read it: ``stalled`` where the experiment cannot make progress."""
        return "stalled" if self.stalled else self.state.value


class Round(Document):
    """One round; the byte counts are sums over its participants."""

    number: int
    attempt: int
    state: RoundState
    base_digest: str
    digest: str | None = None
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

    participant: str
    kind: ParticipantKind
    round: int
    attempt: int = 1
    state: AssignmentState
    digest: str | None = None
    size: int | None = None
    seconds: float | None = None
    error: dict[str, Any] | None = None


class Rejection(Document):
    """Uploads of one participant in one round that were refused for one reason: how many, and the last's detail."""

    participant: str
    round: int
    code: str
    detail: str
    count: int


class Point(Document):
    """A metric's value after a round; ``bytes_up`` is what all participants had sent until then."""

    round: int
    value: float
    time: datetime
    bytes_up: int = 0


class Artifact(Document):
    """A file of a checkpoint; ``digest`` is the BLAKE3 of its bytes."""

    id: str
    kind: str
    round: int
    name: str
    size: int
    digest: str


class LedgerItem(Document):
    """One ledger record as JSON, its link in the hash chain, and the bytes of the update it names."""

    record: dict[str, Any]
    hash: str
    update_size: int


class Event(Document):
    """Something that happened; ``seq`` counts up by one within an experiment."""

    seq: int
    type: str
    round: int | None = None
    data: dict[str, Any] = {}
    time: datetime

    @property
    def final(self) -> bool:
        return self.type in FINAL_EVENTS


class CatalogEntry(Document):
    """An algorithm, dataset or model that can be chosen; ``schema`` is the JSON Schema of its options."""

    name: str
    title: str = ""
    description: str = ""


class Info(Document):
    name: str
    version: str
    instance: str
    database: str
    storage: str


class EnrolmentCode(Document):
    """A one-time code, and the command that a participant runs with it."""

    code: str
    expires_at: datetime
    command: str


class Lease(Document):
    """An assignment held until its lease ends; results must carry ``fence``."""

    id: str
    fence: int
    lease_seconds: float
    task: RoundTask


class Poll(Document):
    """The answer to a participant that asks for work."""

    experiment_state: ExperimentState
    retry_after_seconds: float
    assignment: Lease | None = None
