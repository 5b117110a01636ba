"""A large contribution arrives whatever happens on the way, and what has arrived once is not sent again.

The server is a process of its own, the contribution one of 24 MB to a model that nobody has to train for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ferret_core.contribution import decode_stored
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import ContributionMeta, pieces_of
from ferret_core.rounds import sampling
from ferret_core.storage import FileKind, open_storage
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.repositories import contributions, participants
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant.spool import Spool, Upload
from ferret_sdk.participant.uploader import Uploader
from ferret_sdk.service.progress import Progress
from tests import small_disk
from tests.refusals import refused
from tests.tiers import slow

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(120)]

WEIGHTS = 6_000_000
PART = 1 << 20
PARTS = 23
BASE_DIGEST = "ba" * 32
SPEC = {
    "name": "large",
    "rounds": 1,
    "model": {"source": "/models/large"},
    "dataset": {"name": "jsonl", "train": "/data/train.jsonl"},
    "participants": {"simulated": 1, "edge": 1},
    "algorithm": {"name": "fedavg"},
}
SITE = """
import sys
import threading
from pathlib import Path

from ferret_sdk.participant.uploader import Uploader
from ferret_sdk.participant.spool import Spool
from ferret_sdk.http.transport import Transport

url, token, folder = sys.argv[1:]
spool, transport = Spool(Path(folder)), Transport(url, token)
upload = spool.waiting()
assert upload is not None
Uploader(transport, spool, lambda upload: None).send(upload)
print(transport.traffic.up)
"""


class Server:
    """``ferret api`` on one port, killed and started again; it dies by itself at a ``failpoint``."""

    def __init__(self, home: Path, storage: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FERRET_")},
            "FERRET_HOME": str(home),
            "FERRET_STORAGE_URL": storage,
            "FERRET_PART_BYTES": str(PART),
        }
        self._process: subprocess.Popen[str] | None = None

    def start(self, failpoint: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ferret_api", "--port", str(self.port)],
            env={**self._environment, "FERRET_FAILPOINT": failpoint},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        assert any("listens on" in line for line in self._process.stderr)

    def killed_itself(self) -> bool:
        assert self._process is not None
        self._process.communicate(timeout=10)
        return self._process.returncode == -signal.SIGKILL

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


class World:
    """A server with an open round, and a site that has made its contribution."""

    def __init__(self, home: Path, storage: str) -> None:
        self.home = home
        migrate.upgrade(f"sqlite:///{home}/ferret.db")
        self.database = Database(f"sqlite:///{home}/ferret.db", dispatch=lambda messages: None)
        self.storage = open_storage(storage)
        self.server = Server(home, storage)
        self.token = self._round()
        self.server.start()
        self.spool = Spool(home / "site")
        self.upload = self._made()

    def _round(self) -> str:
        """Opens it, and gives the token of the site."""
        with self.database.begin() as s:
            experiment = lifecycle.submit(s, ExperimentSpec.model_validate(SPEC))[0]
            lifecycle.start(s, experiment.id, BASE_DIGEST, {"weight": (WEIGHTS,)}, ())
            _, code = participants.create_enrolment(s, experiment.id, 60)
            site, token = participants.enrol(s, code, "site-a")
            names = ["client-001", "site-a"]
            tasks = sampling.round_tasks(
                ExperimentSpec.model_validate(SPEC), experiment.id, 1, names, BASE_DIGEST, population=2
            )
            kinds = [(ParticipantKind.SIMULATED, None), (ParticipantKind.EDGE, site.id)]
            asked = [(task, kind, id) for task, (kind, id) in zip(tasks, kinds, strict=True)]
            self._round_id = rounds.open_round(s, experiment.id, 1, asked, 600, bytes_down_each=0).id
        return token

    def _made(self) -> Upload:
        lease = read_model(Lease, Transport(self.server.url, self.token).get("/participant/assignment")["assignment"])
        pieces = pieces_of({"update": np.linspace(-1, 1, WEIGHTS, dtype=np.float32)}, self._meta(lease.task))
        blob = b"".join(pieces)
        upload = Upload.of(lease, decode_stored(blob, digest_bytes(blob)), 1.0, new_key())
        self.spool.keep(upload, pieces)
        return upload

    def _meta(self, task: RoundTask) -> dict[str, Any]:
        of_task = {name: getattr(task, name) for name in ("experiment", "round", "participant", "base_digest")}
        return ContributionMeta(format=1, **of_task, algorithm="fedavg", examples=3).model_dump(mode="json")

    def send(self, watcher: Callable[[Progress], None] = lambda progress: None, url: str | None = None) -> int:
        """What the site does, as often as it takes; the bytes of bodies that were sent."""
        transport = Transport(url or self.server.url, self.token)
        sending = Uploader(transport, self.spool, lambda upload: None)
        sending.watcher = watcher
        waiting = self.spool.waiting()
        assert waiting is not None
        sending.send(waiting)
        return transport.traffic.up

    def drafts(self) -> list[Path]:
        return [self.storage.path(file.location) for file in self.storage.list() if "growing" in file.location]

    def require_accepted(self) -> None:
        """Once, whole, and nothing is left of the way there at either end."""
        with self.database.read() as s:
            (row,) = contributions.of_round(s, self._round_id)
        assert (row.participant, row.digest, row.size) == ("site-a", self.upload.digest, self.upload.size)
        self.storage.verify(f"{FileKind.CONTRIBUTION}/{row.digest[:2]}/{row.digest}", row.digest)
        assert self.drafts() == []
        assert self.spool.waiting() is None


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(home: Path, storage: Path | None = None) -> World:
        home.mkdir(parents=True, exist_ok=True)
        made.append(World(home, f"file://{storage or home / 'storage'}"))
        return made[-1]

    yield make
    for world in made:
        world.server.stop()
        world.database.dispose()


@pytest.fixture
def world(make_world: Callable[..., World], tmp_path: Path) -> World:
    return make_world(tmp_path / "server")


def at(offset: int, act: Callable[[], object]) -> Callable[[Progress], None]:
    """A watcher that does something once when so many bytes have arrived."""
    left = [act]

    def watch(progress: Progress) -> None:
        if progress.done >= offset and left:
            left.pop()()

    return watch


@pytest.mark.parametrize(
    "failpoint",
    ["parts.grown:7", *slow("parts.arrived:1", "upload.stored:1", "upload.accepted:1")],
)
@pytest.mark.slow
def test_a_server_that_is_killed_has_what_has_arrived(world: World, failpoint: str) -> None:
    world.server.stop()
    world.server.start(failpoint)
    with refused("server.unreachable"):
        world.send()
    assert world.server.killed_itself()
    world.server.start()
    left = world.upload.size - 7 * PART if failpoint.startswith("parts.grown") else 0
    assert world.send() == left
    world.require_accepted()


def test_a_site_that_is_killed_goes_on_where_it_was(world: World) -> None:
    arguments = [sys.executable, "-c", SITE, world.server.url, world.token, str(world.home / "site")]
    killed = subprocess.run(arguments, env={**os.environ, "FERRET_FAILPOINT": "parts.sent:5"}, check=False)
    assert killed.returncode == -signal.SIGKILL
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert int(done.stdout) == world.upload.size - 5 * PART
    world.require_accepted()


class CutLink:
    """A way to the server that breaks after so many bytes, as often as told."""

    def __init__(self, port: int, after: int, times: int) -> None:
        self._port, self._after, self.left = port, after, times
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            if select.select([self._listener], [], [], 0.05)[0]:
                with self._listener.accept()[0] as near, socket.create_connection(("127.0.0.1", self._port)) as far:
                    self._pass_on(near, far)

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        passed = 0
        while not self._stopped.is_set():
            for ready in select.select([near, far], [], [], 0.05)[0]:
                chunk = ready.recv(1 << 16)
                if not chunk:
                    return
                passed += len(chunk)
                (far if ready is near else near).sendall(chunk)
                if self.left and passed > self._after:
                    self.left -= 1
                    return


@pytest.mark.slow
def test_a_link_that_is_cut_again_and_again_costs_a_part_each_time(world: World) -> None:
    link = CutLink(world.server.port, after=5 * PART // 2, times=6)
    try:
        sent = world.send(url=link.url)
    finally:
        link.stop()
    assert link.left == 0
    assert world.upload.size <= sent <= world.upload.size + 6 * PART
    world.require_accepted()


@pytest.mark.slow
def test_a_bit_that_flips_at_the_server_is_noticed_and_all_is_sent_again(world: World) -> None:
    def flip() -> None:
        (draft,) = world.drafts()
        with draft.open("r+b") as file:
            file.seek(4_000_000)
            byte = file.read(1)[0]
            file.seek(4_000_000)
            file.write(bytes([byte ^ 1]))

    assert world.send(at(10 * PART, flip)) == 2 * world.upload.size
    world.require_accepted()


def test_a_disk_that_fills_up_keeps_what_has_arrived_until_there_is_room(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    with small_disk.mounted(tmp_path / "disk", 64) as disk:
        world = make_world(tmp_path / "server", disk.path / "storage")
        with refused("storage.full", "has 0 MiB free"):
            world.send(at(3 * PART, disk.fill))
        disk.make_room()
        assert world.send() == world.upload.size - 3 * PART
        world.require_accepted()


@pytest.mark.slow
def test_a_server_that_never_gives_a_receipt_is_given_up(server: Any, world: World) -> None:
    """It says that all has arrived, whatever comes."""
    done = json.dumps({"offset": world.upload.size}).encode()

    def answer(exchange: Any) -> None:
        exchange.send(200, done) if exchange.method == "GET" else exchange.send(204, b"", Upload_Offset="0")

    server.answer = answer
    with refused("server.unexpected"):
        world.send(url=server.url)
    assert world.spool.waiting() == world.upload, "the contribution is kept"
