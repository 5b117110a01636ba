"""The shared environment of one run's sites: a server over TLS, the demo's model, and examples for each site."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import trustme

from ferret_bench._control.stack import serving
from ferret_bench._edge.relay import Relay
from ferret_bench._edge.site_process import JOIN, Place, Site
from ferret_core import sample
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.sample import tasks
from ferret_sdk.service.run import Run
from ferret_sdk.service.service import Service


class Certificate(NamedTuple):
    """PEM files: the server's chain and key, and the authority that clients must trust."""

    chain: Path
    key: Path
    authority: Path


def issue_certificate(folder: Path, hosts: Sequence[str]) -> Certificate:
    """Issues a certificate for the names and addresses ``hosts``. Only its owner can read the key."""
    authority = trustme.CA()
    issued = authority.issue_cert(*hosts)
    certificate = Certificate(folder / "server.crt", folder / "server.key", folder / "authority.crt")
    certificate.key.touch(mode=0o600)
    issued.private_key_pem.write_to_path(certificate.key)
    certificate.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(certificate.authority)
    return certificate


LOOK_SECONDS = 0.2


class Deadline(NamedTuple):
    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Returns the remaining seconds. Raises ``experiment.timeout`` after the deadline."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise FerretError("experiment.timeout", "there is no time left: raise --max-seconds")
        return left


def await_round(run: Run, number: int, deadline: Deadline) -> None:
    """Waits until round ``number`` is committed. Raises the error of a run that ends before."""
    while run.refresh().experiment.round < number:
        if run.state.finished:
            run.require_completed()
        deadline.left()
        time.sleep(LOOK_SECONDS)


LOOPBACK = "127.0.0.1"
EXAMPLES = 100
"""Examples per site."""
LOCAL = {"optimizer": "adam", "learning_rate": 1e-3, "steps": 4, "batch_size": 8}


class World(NamedTuple):
    """A running service that creates sites; ``held`` ends relays and sites with the block."""

    service: Service
    place: Place
    folder: Path
    held: ExitStack

    def submit(self, name: str, rounds: int, **changes: Any) -> Run:
        """Submits an experiment with Ferret's defaults on the demo's tasks, and ``changes`` to its specification."""
        given = {
            "name": name,
            "seed": 7,
            "rounds": rounds,
            "model": {"source": str(sample.model_path())},
            "dataset": {"name": "jsonl", "train": self._data("train"), "test": self._data("test")},
            "algorithm": {"name": "ferret", "local": LOCAL},
            "evaluation": {"every": rounds, "examples": 32, "generate_examples": 0},
            "checkpoint": {"every": rounds},
        }
        return self.service.submit(ExperimentSpec.model_validate(given | changes))

    def site(self, run: Run, name: str, program: Sequence[str] = JOIN) -> Site:
        """Creates a site with a code for ``run``, but does not start it."""
        folder = self.folder / f"{run.id}-{name}"
        data = self.examples(folder, name)
        site = Site(name, folder, self.place, self.relay(), run.create_code().code, data, program)
        self.held.callback(site.end)
        return site

    def examples(self, folder: Path, name: str) -> Path:
        """Makes the ``folder`` and writes examples for a site into it."""
        folder.mkdir()
        data = folder / "examples.jsonl"
        data.write_bytes(b"".join(random.Random(name).sample(self._rows(), EXAMPLES)))
        return data

    def relay(self) -> Relay:
        """Starts a relay to the server."""
        return self.held.enter_context(Relay(self.place.host, (LOOPBACK, urlsplit(self.service.url).port or 0)))

    def _rows(self) -> list[bytes]:
        return Path(self._data("edge")).read_bytes().splitlines(keepends=True)

    def _data(self, part: str) -> str:
        return str(self.folder / f"{part}.jsonl")


@contextmanager
def inhabited(place: Place) -> Generator[World]:
    """Runs ``ferret serve`` with a certificate for ``place``, for the length of a ``with`` block."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="ferret-bench-")))
        tasks.write(folder)
        files = issue_certificate(folder, [place.host, LOOPBACK])
        options = ("--tls-cert", str(files.chain), "--tls-key", str(files.key))
        trusting = place._replace(settings={**place.settings, "FERRET_CA": str(files.authority)})
        stack = held.enter_context(
            serving(folder / "home", f"sqlite:///{folder}/ferret.db", options=options, ca=files.authority)
        )
        yield World(stack.service, trusting, folder, held)
