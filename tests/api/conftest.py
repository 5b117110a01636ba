"""A service in a scratch folder: real SQLite, real files, the real round engine behind the real routes."""

from __future__ import annotations

import math
import shutil
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from sqlalchemy import ColumnElement, update
from starlette.testclient import TestClient

from ferret_api.app import create_app
from ferret_api.context import Context
from ferret_api.server import Server, listen
from ferret_api.settings import ApiSettings
from ferret_core.contribution import decode_stored
from ferret_core.ledger.record import LEDGER_VERSION, LedgerRecord
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import Contribution, ContributionMeta
from ferret_core.rounds import sampling
from ferret_core.rounds.cost import LocalCost
from ferret_core.storage import FileKind
from ferret_db.engine import assignments, lifecycle, rounds
from ferret_db.engine.acceptance import ContributionOffer, accept
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import contributions, events, participants
from ferret_db.tables import FIRST_PROJECT, Assignment
from ferret_sdk.http.certificates import pinned
from tests.api.identity_provider import Forger
from tests.api.identity_provider import settings as oidc_settings
from tests.sized import made
from tests.tiers import EITHER_DATABASE

ADMIN = "an-admin-token-for-the-tests"
BASE_DIGEST = "ba" * 32
SHAPES = {"bias": (4,), "weight": (2, 3)}
UPLOAD_BYTES = 1 << 16
# What starlette's test client and the raw requests of the tests say in Host.
TEST_HOST = "testserver, x"
# Nothing listens there: whatever is not about the broker must work without one.
NO_BROKER = "redis://127.0.0.1:1/0"
# Nothing is looked for beside what a test does.
NO_ALERTS = 86_400.0
ASSIGNMENT = "/api/v1/participant/assignment"


@pytest.fixture
def make_settings(tmp_path: Path, migrated: Path) -> Callable[..., ApiSettings]:
    """Settings of a service whose home folder has a migrated database."""
    return settings_of(make_home(tmp_path, migrated))


@pytest.fixture(scope="module")
def make_shared_settings(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Callable[..., ApiSettings]:
    """Of a service for all tests of a module."""
    return settings_of(make_home(tmp_path_factory.mktemp("shared"), migrated))


@pytest.fixture(scope="session")
def toy_spec(toy_spec: Callable[..., ExperimentSpec]) -> Callable[..., ExperimentSpec]:
    """As everywhere, of the algorithm that takes no step unless another is named: training is not the subject here."""
    return lambda algorithm="toy", /, **changes: toy_spec(algorithm, **changes)


@pytest.fixture
def settings(make_settings: Callable[..., ApiSettings]) -> ApiSettings:
    return make_settings()


@pytest.fixture
def home(settings: ApiSettings) -> Path:
    return settings.home


@pytest.fixture
def site(settings: ApiSettings) -> Iterator[Site]:
    with open_site(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared_site(make_shared_settings: Callable[..., ApiSettings]) -> Iterator[Site]:
    """One service for all tests of a module that leave no trace for each other."""
    with open_site(make_shared_settings()) as opened:
        yield opened


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: Any) -> Iterator[str]:
    with postgresql(migrated=True) as url:
        yield url


@pytest.fixture(params=EITHER_DATABASE)
def either_site(request: pytest.FixtureRequest, make_settings: Callable[..., ApiSettings]) -> Iterator[Site]:
    """A service on each of the databases; on PostgreSQL the tests share one."""
    url = {} if request.param == "sqlite" else {"database_url": request.getfixturevalue("migrated_postgresql")}
    with open_site(make_settings(max_upload_bytes=UPLOAD_BYTES, **url)) as opened:
        yield opened


@pytest.fixture
def serve() -> Iterator[Callable[[ApiSettings], Live]]:
    """Starts real servers, in threads, and stops them."""
    started: list[Live] = []

    def start(settings: ApiSettings) -> Live:
        started.append(Live(settings))
        return started[-1]

    yield start
    for live in started:
        live.stop()


@pytest.fixture
def live(serve: Callable[[ApiSettings], Live], make_settings: Callable[..., ApiSettings]) -> Live:
    """A real server that looks for news often."""
    return serve(make_settings(stream_poll_seconds=0.05, poll_seconds=0.1))


@pytest.fixture
def forger() -> Iterator[Forger]:
    """A provider of OpenID Connect that says what a test wants."""
    forger = Forger()
    yield forger
    forger.stop()


@pytest.fixture
def forged(make_settings: Callable[..., ApiSettings], forger: Forger) -> Iterator[Site]:
    """A service with that provider."""
    with open_site(make_settings(**oidc_settings(forger.url))) as opened:
        yield opened


def settings_of(home: Path) -> Callable[..., ApiSettings]:
    usual = {"home": home, "broker_url": NO_BROKER, "admin_token": ADMIN, "allowed_hosts": TEST_HOST}
    return lambda **changes: made(**usual | {"alert_seconds": NO_ALERTS, **changes})


def make_home(parent: Path, migrated: Path) -> Path:
    folder = parent / "home"
    folder.mkdir()
    shutil.copyfile(migrated, folder / "ferret.db")
    return folder


@contextmanager
def open_site(settings: ApiSettings) -> Generator[Site]:
    app = create_app(settings)
    with TestClient(app, headers=bearer(ADMIN)) as admin:
        yield Site(app, admin)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Live:
    """A server on a free port, with a client of the administrator."""

    def __init__(self, settings: ApiSettings) -> None:
        context = Context.open(settings)
        self.app = create_app(settings, context)
        self.server = Server(self.app, context)
        listener = listen("127.0.0.1", 0)
        self.port = int(listener.getsockname()[1])
        self.url = f"{'https' if settings.certificate else 'http'}://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.run, args=([listener],))
        self.thread.start()
        verify = pinned(settings.certificate.cert_file) if settings.certificate else True
        self.admin = httpx.Client(base_url=self.url, headers=bearer(ADMIN), timeout=20, verify=verify)
        self.admin.get("/healthz").raise_for_status()
        self.site = Site(self.app, self.admin)

    def stop(self) -> None:
        self.admin.close()
        self.server.should_exit = True
        self.thread.join(timeout=20)
        assert not self.thread.is_alive()


class Site:
    """A running service, and short ways to the states that tests start from."""

    def __init__(self, app: FastAPI, admin: Any) -> None:
        self.app = app
        self.admin = admin

    @property
    def context(self) -> Context:
        return self.app.state.context

    @property
    def database(self) -> Any:
        return self.context.database

    def client(self, token: str | None = None) -> TestClient:
        """Somebody else's client; without a token, a stranger's."""
        return TestClient(self.app, headers=bearer(token) if token else {})

    def page(self) -> TestClient:
        """A browser with the dashboard's page open, in which nobody has signed in."""
        return TestClient(self.app, headers={"Origin": "http://testserver"})

    def browser(self, **credential: str) -> TestClient:
        """One in which somebody has signed in, by default the administrator."""
        client = self.page()
        client.post("/api/v1/session", json=credential or {"token": self.context.admin.value}).raise_for_status()
        return client

    def audit(self, **query: Any) -> list[dict[str, Any]]:
        """The entries of the audit log, oldest first."""
        return self.admin.get("/api/v1/audit", params={"order": "oldest", **query}).json()["items"]

    def show(self, experiment_id: str) -> dict[str, Any]:
        """The experiment as the administrator sees it."""
        return self.admin.get(f"/api/v1/experiments/{experiment_id}").json()

    def move(self, experiment_id: str, verb: str, **request: Any) -> httpx.Response:
        """The administrator's `POST …:verb`."""
        return self.admin.post(f"/api/v1/experiments/{experiment_id}:{verb}", **request)

    def files(self) -> list[Path]:
        """The contributions that the storage holds."""
        return sorted(
            path for path in (self.context.settings.home / "storage/contributions").rglob("*") if path.is_file()
        )

    def submit(self, project: str = FIRST_PROJECT, **changes: Any) -> str:
        """Id of a queued experiment."""
        with self.database.begin() as s:
            return lifecycle.submit(s, spec(**changes), project=project)[0].id

    def start(
        self, experiment_id: str, files: Sequence[ArtifactFile] = (), shapes: Mapping[str, tuple[int, ...]] = SHAPES
    ) -> None:
        with self.database.begin() as s:
            lifecycle.start(s, experiment_id, BASE_DIGEST, shapes, files)

    def running(self, shapes: Mapping[str, tuple[int, ...]] = SHAPES, **changes: Any) -> str:
        """Id of a running experiment."""
        experiment_id = self.submit(**changes)
        self.start(experiment_id, shapes=shapes)
        return experiment_id

    def store(self, name: str, data: bytes) -> ArtifactFile:
        stored = self.context.storage.put_bytes(data, FileKind.CHECKPOINT)
        return ArtifactFile(name, stored.size, stored.digest, stored.location)

    def enrol(self, experiment_id: str, name: str = "site-a", *, approval: bool = False) -> str:
        """Token of a new participant."""
        with self.database.begin() as s:
            _, code = participants.create_enrolment(s, experiment_id, 60, approval=approval)
            return participants.enrol(s, code, name)[1]

    def member(self, *, simulated: Sequence[str] = ("client-001",), **changes: Any) -> Member:
        """A participant that holds the lease on its assignment in round 1, which half of the participants can close."""
        participants = {"edge": 1, "simulated": len(simulated)}
        experiment_id = self.running(**{"participants": participants, "round": {"quorum": 0.5}, **changes})
        client = self.client(self.enrol(experiment_id))
        *others, _ = self.open_round(experiment_id, edge=["site-a"], simulated=simulated)
        lease = client.get(ASSIGNMENT).json()["assignment"]
        return Member(self, client, experiment_id, lease, *others)

    def open_round(
        self, experiment_id: str, *, simulated: Sequence[str] = (), edge: Sequence[str] = (), number: int = 1
    ) -> list[str]:
        """Opens a round and gives the ids of its assignments in participant order."""
        resolved = spec()
        with self.database.begin() as s:
            ids = {row.name: row.id for row in participants.of_experiment(s, experiment_id)}
            base = BASE_DIGEST if number == 1 else model_digest(number - 1)
            kinds = dict.fromkeys(simulated, ParticipantKind.SIMULATED) | dict.fromkeys(edge, ParticipantKind.EDGE)
            tasks = [
                (task, kinds[task.participant], ids.get(task.participant))
                for task in sampling.round_tasks(resolved, experiment_id, number, list(kinds), base)
            ]
            round_ = rounds.open_round(s, experiment_id, number, tasks, 600, bytes_down_each=100)
            return [row.id for row in assignment_rows.of_round(s, round_.id)]

    def append(self, experiment_id: str, count: int = 1, size: int = 3) -> None:
        """Events of the experiment, each in a transaction of its own."""
        for _ in range(count):
            with self.database.begin() as s:
                events.add(s, experiment_id, "contribution.accepted", round=1, data={"text": "x" * size})

    def assignment(self, assignment_id: str) -> Assignment:
        with self.database.read() as s:
            return assignment_rows.get(s, assignment_id)

    def expire(self, table: type[Any], column: str, row_id: str, seconds: float = 1) -> None:
        """Moves a deadline into the past, so that no test depends on how fast the machine is."""
        self.expire_all(table, column, seconds, table.id == row_id)

    def expire_all(self, table: type[Any], column: str, seconds: float, *where: ColumnElement[bool]) -> None:
        """The same for every row, those that other tests left on a shared database among them."""
        with self.database.begin() as s:
            past = self.database.now(s) - timedelta(seconds=seconds)
            s.execute(update(table).where(*where).values({column: past}))

    def deliver(self, assignment_id: str) -> bytes:
        """Does a simulated client's work."""
        with self.database.begin() as s:
            leased = assignments.lease(s, assignment_id, 60)
            assert leased is not None
            blob = contribution(RoundTask.model_validate(leased.task)).encode()
            sealed = decode_stored(blob, self.context.storage.put_bytes(blob, FileKind.CONTRIBUTION).digest)
            accept(s, ContributionOffer(assignment_id, leased.fence, sealed, LocalCost(1.5)))
        return blob

    def reject(self, assignment_id: str) -> None:
        """A simulated client gives its work up."""
        with self.database.begin() as s:
            leased = assignments.lease(s, assignment_id, 60)
            assert leased is not None
            assignments.reject(s, assignment_id, leased.fence, FerretError("training.non_finite", "the loss is nan"))

    def commit(
        self,
        experiment_id: str,
        number: int = 1,
        files: Sequence[ArtifactFile] = (),
        metrics: dict[str, float] | None = None,
        inside: dict[str, Any] | None = None,
    ) -> bytes:
        """Commits the frozen round and gives its update blob."""
        update = f"update of round {number}".encode()
        stored = self.context.storage.put_bytes(update, FileKind.UPDATE)
        with self.database.begin() as s:
            round_ = rounds.round_rows.latest(s, experiment_id, number)
            assert round_ is not None
            frozen = contributions.of_round(s, round_.id)
            assert frozen
            record = LedgerRecord(
                version=LEDGER_VERSION,
                experiment=experiment_id,
                spec="5e" * 32,
                round=number,
                base_digest=round_.base_digest,
                digest=model_digest(number),
                update=stored.digest,
                contributions=tuple(sorted((row.participant, row.digest) for row in frozen)),
                previous="",
                clipped=(),
                refused=(),
                signatures=(),
                halvings=0,
            )
            assert rounds.commit_round(
                s,
                round_.id,
                digest=model_digest(number),
                record=record.model_dump(mode="json"),
                record_hash=record.hash,
                update_digest=stored.digest,
                update_size=stored.size,
                artifacts=files,
                metrics={"train_loss": 2.0 / number} if metrics is None else metrics,
                inside=inside or {"step": [0.25, 0.5], "weights": [1.0, 2.0]},
            )
        return update

    def committed(self, experiment_id: str, number: int = 1, **commit: Any) -> bytes:
        """A whole round of one simulated client; its update blob."""
        (assignment_id,) = self.open_round(experiment_id, simulated=["client-001"], number=number)
        self.deliver(assignment_id)
        return self.commit(experiment_id, number, **commit)


class Member(NamedTuple):
    """A participant that holds a lease, beside a simulated client's assignment ``other_id``."""

    site: Site
    client: TestClient
    experiment_id: str
    lease: dict[str, Any]
    other_id: str = ""

    @property
    def assignment_id(self) -> str:
        return self.lease["id"]

    @property
    def address(self) -> str:
        """Where its assignment is."""
        return f"/api/v1/participant/assignments/{self.assignment_id}"

    def blob(self, **changes: Any) -> bytes:
        """Its contribution, or with changes something like it."""
        return contribution(RoundTask.model_validate(self.lease["task"]), **changes).encode()

    def upload(self, content: Any, **headers: str) -> Any:
        return self.client.put(
            f"{self.address}/contribution", content=content, headers=upload_headers(self.lease) | headers
        )

    def shown(self) -> dict[str, Any]:
        """Its contribution as the administrator sees it."""
        items = self.site.admin.get(f"/api/v1/experiments/{self.experiment_id}/contributions").json()["items"]
        return next(item for item in items if item["participant"] == "site-a")

    def rejections(self) -> list[dict[str, Any]]:
        return self.site.admin.get(f"/api/v1/experiments/{self.experiment_id}/rejections").json()["items"]


def upload_headers(lease: Mapping[str, Any]) -> dict[str, str]:
    """Of a contribution under the lease."""
    said = {"Content-Type": "application/octet-stream", "Ferret-Seconds": "2.5"}
    return said | {"Ferret-Fence": str(lease["fence"])}


def document(**changes: Any) -> dict[str, Any]:
    """A specification as people write it: what has no default."""
    return {
        "name": "toy",
        "model": {"source": "/models/toy"},
        "dataset": {"name": "jsonl", "train": "/data/train.jsonl"},
        "participants": {"simulated": 2},
        **changes,
    }


def spec(**changes: Any) -> ExperimentSpec:
    """A valid specification of a small experiment, its options as the catalog fills them in for FedAvg."""
    return ExperimentSpec.model_validate(document(**{"rounds": 3, "algorithm": {"name": "fedavg"}, **changes}))


def model_digest(number: int) -> str:
    return digest_bytes(f"model after round {number}".encode())


def contribution(
    task: RoundTask, *, size: int = sum(map(math.prod, SHAPES.values())), value: float = 0.5, **changes: Any
) -> Contribution:
    """A FedAvg contribution for the task, or with ``changes`` to its metadata something like it."""
    meta = {
        "format": 1,
        "experiment": task.experiment,
        "round": task.round,
        "participant": task.participant,
        "algorithm": "fedavg",
        "base_digest": task.base_digest,
        "examples": 8,
        "metrics": {"train_loss": 2.0},
        **changes,
    }
    return Contribution(ContributionMeta.model_validate(meta), {"update": np.full(size, value, np.float32)})
