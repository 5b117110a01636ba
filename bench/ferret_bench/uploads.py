"""Uploads in resumable parts: the cost of a large contribution in memory, time and bytes, across a broken link.

For each size a fresh API, alone on SQLite, takes one FedAvg contribution from a site in a separate process. The
link between them breaks once, in the middle. The document holds ``machine``, its ``load`` before and after (over 1, 5
and 15 minutes), ``bounds``, and for each of ``cases``

    mebibytes                  of weights in the contribution
    missing                    the reason that the case was skipped, else null, and then
    size, part_bytes           of the contribution and of its parts
    accepted                   true if the server has it, once and whole
    resent_bytes               of it that were sent twice
    seconds, outage_seconds    from the first part to the receipt, and the ones without a connection
    bytes_per_second           of the contribution, without the outage
    copy_bytes_per_second      of a copy of the same file on the same disk, flushed (median of three)
    idle_bytes                 resident memory of the API before, at its peak
    api_bytes, site_bytes      the same of API and site after the upload, pages of mapped files included

Other work on the machine makes all times longer; memory and bytes do not depend on it.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from threading import Timer
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np

from ferret_bench._api.service import Api, alone
from ferret_bench._base import Document, Say, Table, shown
from ferret_bench._edge.relay import Relay
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.memory import most_resident_bytes
from ferret_core.contribution import SealedContribution
from ferret_core.protocol.digest import digest_pieces
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta
from ferret_core.rounds import sampling
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.repositories import contributions, participants
from ferret_sdk.http.answers import read
from ferret_sdk.http.transport import Transport
from ferret_sdk.participant.spool import Spool, Upload


@final
class Link(Relay):
    """Ends all connections when ``after`` bytes have gone up. ``outage_seconds`` count from then until the next
    connection; None before it.
    """

    def __init__(self, target: tuple[str, int], after: int) -> None:
        super().__init__("127.0.0.1", target)
        self.outage_seconds: float | None = None
        self._after = after
        self._cut_at: float | None = None

    def _hold(self, site: socket.socket, server: socket.socket) -> bool:
        if self._cut_at is not None and self.outage_seconds is None:
            self.outage_seconds = perf_counter() - self._cut_at
        return super()._hold(site, server)

    def _count(self, count: int, up: bool) -> None:
        super()._count(count, up)
        if self._cut_at is None and self.bytes.up >= self._after:
            self._cut_at = perf_counter()
            self.cut()


WEIGHT_BYTES = 4
ROUND_SECONDS = 24 * 3600.0
BASE_DIGEST = "ba" * 32
PATTERN = 1_000_003
"""Weights until they repeat: a prime, so that no two parts are equal."""
SPEC = ExperimentSpec.model_validate(
    {
        "name": "large",
        "rounds": 1,
        "model": {"source": "/nowhere"},
        "dataset": {"name": "jsonl", "train": "/nowhere"},
        "participants": {"simulated": 1, "edge": 1},
        "algorithm": {"name": "fedavg"},
    }
)


class Opened(NamedTuple):
    """A round that waits for the site with this token, and for another, so that it stays open."""

    token: str
    round_id: str


def open_round(database: Database, weights: int) -> Opened:
    """Opens the first round of an experiment with contributions of ``weights`` weights."""
    with database.begin() as s:
        experiment = lifecycle.submit(s, SPEC)[0].id
        lifecycle.start(s, experiment, BASE_DIGEST, {"weight": (weights,)}, ())
        code = participants.create_enrolment(s, experiment, ROUND_SECONDS)[1]
        site, token = participants.enrol(s, code, "site-a")
        names = ["client-001", site.name]
        tasks = sampling.round_tasks(SPEC, experiment, 1, names, BASE_DIGEST, population=2)
        asked = [(tasks[0], ParticipantKind.SIMULATED, None), (tasks[1], ParticipantKind.EDGE, site.id)]
        return Opened(token, rounds.open_round(s, experiment, 1, asked, ROUND_SECONDS, bytes_down_each=0).id)


def spool_upload(url: str, token: str, weights: int, folder: Path) -> Upload:
    """Stores the upload in the spool in ``folder``, under a lease of the server at ``url``."""
    lease = read(Lease, Transport(url, token).get("/participant/assignment")["assignment"])
    sealed = _sealed(lease.task, weights)
    upload = Upload.of(lease, sealed, 1.0, new_key())
    Spool(folder).keep(upload, sealed.pieces)
    return upload


def accepted_digests(database: Database, round_id: str) -> Sequence[str]:
    """Returns the digests of the round's contributions."""
    with database.read() as s:
        return [row.digest for row in contributions.of_round(s, round_id)]


def _sealed(task: RoundTask, weights: int) -> SealedContribution:
    meta = ContributionMeta(
        format=FORMAT_VERSION,
        experiment=task.experiment,
        round=task.round,
        participant=task.participant,
        base_digest=task.base_digest,
        algorithm=SPEC.algorithm.name,
        examples=1,
    )
    update = np.resize(np.linspace(-1, 1, PATTERN, dtype=np.float32), weights)
    contribution = Contribution(meta, {"update": update})
    pieces = contribution.pieces()
    return SealedContribution(pieces, digest_pieces(pieces), contribution)


MEBIBYTE = 1 << 20
PART = 8 * MEBIBYTE
FULL, QUICK = (64, 256, 1024), (24, 48)
BOUNDS = {
    "accepted": Bound(">=", 1),
    "resent_bytes": Bound("<=", PART),
    "api_growth_bytes": Bound("<=", 64 * MEBIBYTE),
    "site_growth_bytes": Bound("<=", 64 * MEBIBYTE),
}
FILES = 3
"""Copies of the contribution on disk: at the site, at the server, and the copy."""
COPIES = 3
COLUMNS = (
    "MiB",
    "API idle",
    "API peak",
    "site peak",
    "seconds",
    "of these cut off",
    "MB/s",
    "copy MB/s",
    "MB sent twice",
    "accepted",
)


@final
class Benchmark:
    """``ferret bench uploads``; with ``--bounds`` the smallest and the largest size."""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin, load = perf_counter(), os.getloadavg()
        sizes = QUICK if quick else (FULL[0], FULL[-1]) if bounds else FULL
        found = list[dict[str, Any]]()
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
            for mebibytes in sizes:
                say(f"{mebibytes} MiB")
                left = max_seconds - (perf_counter() - begin)
                found.append({"mebibytes": mebibytes, **_case(Path(folder) / str(mebibytes), mebibytes, left)})
        return {
            "benchmark": "uploads",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": {"before": load, "after": os.getloadavg()},
            "cases": found,
            "bounds": against(BOUNDS, _bounded(found)),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        cases = document["cases"]
        missing = [[case["mebibytes"], case["missing"]] for case in cases if case["missing"]]
        return [
            Table(
                "uploads, cut off once; memory in MiB",
                COLUMNS,
                [_row(case) for case in cases if not case["missing"]],
            ),
            *([Table("not taken", ["MiB", "reason"], missing)] if missing else []),
            bound.table(document),
        ]


def _case(home: Path, mebibytes: int, max_seconds: float) -> dict[str, Any]:
    if max_seconds <= 0:
        return {"missing": "no time was left"}
    free, needed = shutil.disk_usage(home.parent).free, FILES * mebibytes * MEBIBYTE
    if free < needed:
        return {"missing": f"{home.parent} has {free >> 20} MiB free, and {needed >> 20} are needed"}
    weights = mebibytes * MEBIBYTE // WEIGHT_BYTES
    settings = {"FERRET_PART_BYTES": str(PART), "FERRET_LEASE_SECONDS": str(ROUND_SECONDS)}
    with alone(home, **settings) as api:
        opened = open_round(api.database, weights)
        upload = spool_upload(f"http://127.0.0.1:{api.port}", opened.token, weights, home / "site")
        copied = median(_copy_seconds(home / "site/contribution", home / "copy") for _ in range(COPIES))
        found = {"missing": None, **_sent(api, opened, upload, home / "site", max_seconds)}
    shutil.rmtree(home)
    return {**found, "copy_bytes_per_second": upload.size / copied}


def _sent(api: Api, opened: Opened, upload: Upload, folder: Path, max_seconds: float) -> dict[str, Any]:
    idle = most_resident_bytes(api.pid)
    with Link(("127.0.0.1", api.port), after=upload.size // 2 + PART // 2) as link:
        said = _site(f"http://127.0.0.1:{link.port}", opened.token, folder, max_seconds)
        outage = link.outage_seconds
    if outage is None:
        raise FerretError("server.unexpected", f"no link broke on the way of {upload.size} bytes")
    return {
        "size": upload.size,
        "part_bytes": upload.part_bytes,
        "accepted": accepted_digests(api.database, opened.round_id) == [upload.digest],
        "resent_bytes": said["sent"] - upload.size,
        "seconds": said["seconds"],
        "outage_seconds": outage,
        "bytes_per_second": upload.size / (said["seconds"] - outage),
        "idle_bytes": idle,
        "api_bytes": most_resident_bytes(api.pid),
        "site_bytes": said["resident"],
    }


def _site(url: str, token: str, folder: Path, max_seconds: float) -> dict[str, Any]:
    """Returns the site's output, and its peak of resident memory."""
    command = [sys.executable, "-P", "-m", "ferret_bench._upload_site", url, token, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as site:
        late = Timer(max_seconds, site.kill)
        late.start()
        try:
            assert site.stdout is not None
            if not (said := site.stdout.readline()):
                detail = f"the site did not send its contribution within {max_seconds:.0f} s, or said above why"
                raise FerretError("experiment.timeout", f"{detail}; --max-seconds gives it longer")
            return {**json.loads(said), "resident": most_resident_bytes(site.pid)}
        finally:
            late.cancel()
            site.kill()


def _copy_seconds(source: Path, copy: Path) -> float:
    """Returns the seconds until it is on the disk."""
    begin = perf_counter()
    shutil.copyfile(source, copy)
    with copy.open("rb+") as file:
        os.fsync(file.fileno())
    seconds = perf_counter() - begin
    copy.unlink()
    return seconds


def _bounded(cases: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Returns the ratios over the completed cases. The growth of memory from the smallest upload to the largest needs
    all.
    """
    taken = [case for case in cases if not case["missing"]]
    grown = {
        f"{side}_growth_bytes": taken[-1][f"{side}_bytes"] - taken[0][f"{side}_bytes"] if taken == cases else None
        for side in ("api", "site")
    }
    return {
        "accepted": min((float(case["accepted"]) for case in taken), default=None),
        "resent_bytes": max((case["resent_bytes"] for case in taken), default=None),
        **grown,
    }


def _row(case: Mapping[str, Any]) -> list[Any]:
    return [
        case["mebibytes"],
        *(case[f"{who}_bytes"] // MEBIBYTE for who in ("idle", "api", "site")),
        *(shown(case[name]) for name in ("seconds", "outage_seconds")),
        *(shown(case[name] / 1e6) for name in ("bytes_per_second", "copy_bytes_per_second", "resent_bytes")),
        "yes" if case["accepted"] else "no",
    ]
