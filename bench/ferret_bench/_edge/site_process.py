"""A site: ``ferret join`` in a process with a separate folder, environment and relay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, NamedTuple

from ferret_bench._edge.relay import Bytes, Relay
from ferret_core.protocol.errors import FerretError
from ferret_core.replica.checkpoint import MANIFEST, Manifest

JOIN = ("-m", "ferret_cli", "join", "--yes")
WAIT_SECONDS = 0.05


class Place(NamedTuple):
    """A site's connection: the ``host`` of its relay, settings, and a prefix of its command, e.g. ``ip netns exec``."""

    host: str
    settings: Mapping[str, str] = MappingProxyType({})
    prefix: Sequence[str] = ()


class Sent(NamedTuple):
    """An accepted contribution: its round, and the site's bytes at that time."""

    round: int
    at: Bytes


class Line(NamedTuple):
    """A line of the site's output, and its time (``time.monotonic``)."""

    text: str
    at: float


class Site:
    """One participant. ``program`` is what Python runs: ``ferret join``, or a script that takes its arguments."""

    def __init__(
        self, name: str, folder: Path, place: Place, relay: Relay, code: str, data: Path, program: Sequence[str] = JOIN
    ) -> None:
        self.name = name
        self.relay = relay
        self.sent = list[Sent]()
        self.said = list[Line]()
        self.kept = folder / "model"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FERRET_")},
            "FERRET_HOME": str(folder / "home"),
            "FERRET_CODE": code,
            "OMP_NUM_THREADS": "1",
            "NO_COLOR": "1",
            **place.settings,
        }
        address = f"https://{place.host}:{relay.port}"
        options = ["--data", str(data), "--name", name, "--keep-model", str(self.kept), "--json"]
        self._command = [*place.prefix, sys.executable, "-P", *program, address, *options]
        self._process: subprocess.Popen[str] | None = None
        self._readers = list[threading.Thread]()

    def start(self, **settings: str) -> None:
        """Starts or restarts it."""
        self._process = subprocess.Popen(
            self._command,
            env={**self._environment, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for stream, read in ((self._process.stdout, self._report), (self._process.stderr, self._say)):
            self._readers.append(threading.Thread(target=_each_line, args=(stream, read), daemon=True))
            self._readers[-1].start()

    def wait(self, seconds: float) -> int:
        """Returns its exit status. Raises ``experiment.timeout``, with its last output, after ``seconds``."""
        assert self._process is not None
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FerretError("experiment.timeout", f"{self.name} did not end: {self.last_words}") from None
        for reader in self._readers:
            reader.join()
        return status

    def end(self) -> None:
        """Kills it if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for reader in self._readers:
                reader.join()

    @property
    def last_words(self) -> str:
        return " | ".join(line.text for line in self.said[-5:])

    @property
    def rounds(self) -> list[tuple[int, Bytes]]:
        """Returns the bytes of each round after the first, between acknowledgements: polls, update, upload."""
        pairs = zip(self.sent, self.sent[1:], strict=False)
        return [(now.round, now.at.since(before.at)) for before, now in pairs if now.round == before.round + 1]

    @property
    def digest(self) -> str | None:
        """Returns the digest of the model that it rebuilt at the end, or None."""
        manifest = self.kept / MANIFEST
        return Manifest.model_validate_json(manifest.read_bytes()).digest if manifest.exists() else None

    def _report(self, line: str) -> None:
        report: dict[str, Any] = json.loads(line)
        # The last line may be its final error.
        if "round" in report and report["error"] is None:
            self.sent.append(Sent(report["round"], self.relay.bytes))

    def _say(self, line: str) -> None:
        self.said.append(Line(line, monotonic()))


def _each_line(stream: Any, read: Any) -> None:
    with stream:
        for line in stream:
            read(line.rstrip("\n"))
