"""A contribution of any size that waits at a site, for an untrained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ferret_core.contribution import SealedContribution
from ferret_core.protocol.digest import digest_pieces
from ferret_core.protocol.resources.participants import Lease
from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import ParticipantKind
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta
from ferret_core.rounds import sampling
from ferret_db.database import Database
from ferret_db.engine import lifecycle, rounds
from ferret_db.repositories import contributions, participants
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant.spool import Spool, Upload

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


def opened(database: Database, weights: int) -> Opened:
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


def kept(url: str, token: str, weights: int, folder: Path) -> Upload:
    """Stores the upload in the spool in ``folder``, under a lease of the server at ``url``."""
    lease = read_model(Lease, Transport(url, token).get("/participant/assignment")["assignment"])
    sealed = _sealed(lease.task, weights)
    upload = Upload.of(lease, sealed, 1.0, new_key())
    Spool(folder).keep(upload, sealed.pieces)
    return upload


def accepted(database: Database, round_id: str) -> Sequence[str]:
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
