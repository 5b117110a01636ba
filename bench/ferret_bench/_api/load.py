"""Participants that poll and upload at a fixed rate, in a process: ``python -m ferret_bench._api.load < ORDER``.

The order is JSON: ``port``, ``cohorts``, ``polls`` and ``uploads`` per second, and ``case_seconds``. Every participant
that is not drawn polls once, unmeasured. The results are printed as JSON.

An open loop: all times are fixed beforehand, and a request's time begins when it was due. So a server that stops for a
second is charged with every request of that second. Each poll uses a new connection; a participant that finds work
sends its contribution over the same one.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
from collections import Counter
from collections.abc import Coroutine, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ferret_bench._api.participants import WEIGHTS, Cohort, Member
from ferret_bench.measure.background import repeated
from ferret_bench.measure.statistics import spread
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta

DRIP_SECONDS = 1.0


@contextmanager
def slow_connections(port: int, count: int) -> Generator[None]:
    """Opens ``count`` connections that send a byte of a request every second. A closed one is reopened."""
    with _held(port, count) as peers, repeated(lambda: _drip(port, peers), DRIP_SECONDS):
        yield


@contextmanager
def _held(port: int, count: int) -> Generator[list[socket.socket]]:
    with ExitStack() as held:
        peers = [_connected(port) for _ in range(count)]
        held.callback(lambda: [peer.close() for peer in peers])
        yield peers


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _drip(port: int, peers: list[socket.socket]) -> None:
    for number, peer in enumerate(peers):
        try:
            peer.sendall(b"G")
        except OSError:
            peer.close()
            with suppress(OSError):
                peers[number] = _connected(port)


ASK = "/api/v1/participant/assignment"
MEETING_AT_ONCE = 16
PATIENCE_SECONDS = 60.0
"""Longest wait for an answer, and the time of a request without one."""


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Load:
    """The participants of ``cohorts``, and the results of their requests."""

    def __init__(self, port: int, cohorts: list[Cohort]) -> None:
        self._port = port
        self._cohorts = cohorts
        self._tags: dict[str, str] = {}
        self._update = np.full(WEIGHTS, 0.5, np.float32)
        self.ms: dict[str, list[float]] = {"polls": [], "uploads": []}
        self.statuses: dict[str, Counter[str]] = {"polls": Counter(), "uploads": Counter()}

    async def meet(self) -> None:
        """Sends one poll for every participant that is not drawn."""
        others = iter([member for cohort in self._cohorts for member in cohort.others])

        async def one_after_another() -> None:
            for member in others:
                await self.poll(member, perf_counter())

        await asyncio.gather(*(one_after_another() for _ in range(MEETING_AT_ONCE)))
        self.ms["polls"].clear()
        self.statuses["polls"].clear()

    async def run(self, polls: float, uploads: float, seconds: float) -> None:
        """Sends ``polls`` polls per second. Some of them find the work for ``uploads`` contributions."""
        others = [member for cohort in self._cohorts for member in cohort.others]
        drawn, choose = self._drawn(), random.Random(0)
        jobs = set[asyncio.Task[None]]()
        begin = perf_counter()
        asked = delivered = 0
        while (now := perf_counter() - begin) < seconds:
            due = list[Coroutine[Any, Any, None]]()
            while delivered < uploads * now:
                due.append(self.deliver(*next(drawn), begin + delivered / uploads))
                delivered += 1
            while asked < (polls - uploads) * now:
                due.append(self.poll(choose.choice(others), begin + asked / (polls - uploads)))
                asked += 1
            for job in due:
                task = asyncio.create_task(job)
                jobs.add(task)
                task.add_done_callback(jobs.discard)
            await asyncio.sleep(0.002)
        if jobs:
            await asyncio.wait(jobs)

    async def poll(self, member: Member, due: float) -> None:
        """Sends a poll that finds no work."""
        await self._try("polls", self._poll(member, due))

    async def deliver(self, cohort: Cohort, member: Member, due: float) -> None:
        """Sends a poll that finds work, and the contribution."""
        await self._try("uploads", self._deliver(cohort, member, due))

    async def _try(self, kind: str, job: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await job
        except (OSError, EOFError) as error:
            self.statuses[kind][type(error).__name__] += 1
            self.ms[kind].append(1000 * PATIENCE_SECONDS)

    def _drawn(self) -> Iterator[tuple[Cohort, Member]]:
        """Yields one cohort's workers after another's, endlessly."""
        while True:
            for cohort in self._cohorts:
                for member in cohort.workers:
                    yield cohort, member

    async def _poll(self, member: Member, due: float) -> None:
        tag = self._tags.get(member.id)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            known = {"If-None-Match": tag} if tag else {}
            answer = await self._exchange(reader, writer, "GET", ASK, member, {"Connection": "close", **known})
        finally:
            writer.close()
        self._note("polls", answer.status, due)
        if tag := answer.headers.get("etag"):
            self._tags[member.id] = tag

    async def _deliver(self, cohort: Cohort, member: Member, due: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            answer = await self._exchange(reader, writer, "GET", ASK, member, {})
            self._note("polls", answer.status, due)
            lease = json.loads(answer.body)["assignment"] if answer.status == 200 else None
            if lease is None:
                self.statuses["uploads"]["no work"] += 1
                return
            blob = self._contribution(lease["task"])
            headers = {
                "Content-Type": "application/octet-stream",
                "Ferret-Fence": str(lease["fence"]),
                "Ferret-Seconds": "1",
                "Idempotency-Key": digest_bytes(blob),
                "Connection": "close",
            }
            begin, path = perf_counter(), f"/api/v1/participant/assignments/{lease['id']}/contribution"
            answer = await self._exchange(reader, writer, "PUT", path, member, headers, blob)
            self._note("uploads", answer.status, begin)
        finally:
            writer.close()

    def _contribution(self, task: dict[str, Any]) -> bytes:
        of_task = {field: task[field] for field in ("experiment", "round", "participant", "base_digest")}
        told = {"algorithm": "fedavg", "examples": 8, "metrics": {"train_loss": 2.0}}
        meta = {"format": FORMAT_VERSION, **of_task, **told}
        return Contribution(ContributionMeta.model_validate(meta), {"update": self._update}).encode()

    def _note(self, kind: str, status: int, due: float) -> None:
        self.statuses[kind][str(status)] += 1
        self.ms[kind].append(1000 * (perf_counter() - due))

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        member: Member,
        headers: dict[str, str],
        body: bytes = b"",
    ) -> Answered:
        # Each comes from a different address, through a proxy on this machine.
        number = int(member.id.removeprefix("par_")[:6], 16)
        address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        said = {
            "Host": "localhost",
            "Authorization": f"Bearer {member.token}",
            "X-Forwarded-For": address,
            "Content-Length": str(len(body)),
            **headers,
        }
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        first, *rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
        answer = await reader.readexactly(int(found.get("content-length", 0)))
        return Answered(int(first.split()[1]), found, answer)


def _cohorts(order: dict[str, Any]) -> list[Cohort]:
    return [
        Cohort(experiment, [Member(*worker) for worker in workers], [Member(*other) for other in others])
        for experiment, workers, others in order["cohorts"]
    ]


def _figures(load: Load) -> dict[str, Any]:
    return {
        kind: {
            "answered": sum(count for status, count in load.statuses[kind].items() if status.isdigit()),
            "statuses": load.statuses[kind],
            "ms": spread(ms) if ms else None,
        }
        for kind, ms in load.ms.items()
    } | {"ms": spread([ms for kind in load.ms.values() for ms in kind])}


async def _main() -> None:
    order = json.load(sys.stdin)
    load = Load(order["port"], _cohorts(order))
    await load.meet()
    await load.run(order["polls"], order["uploads"], order["case_seconds"])
    print(json.dumps(_figures(load)))


if __name__ == "__main__":
    asyncio.run(_main())
