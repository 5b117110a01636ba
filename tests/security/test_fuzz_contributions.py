"""Contributions of several algorithms with bytes and JSON values changed, each opened for the task that it was made
for: it is a contribution still, or refused with one of two typed errors, and none of them takes long."""

from __future__ import annotations

import json
import random
import struct
from copy import deepcopy
from time import thread_time
from typing import Any, NamedTuple

import pytest

from ferret_bench._control.workload import Workload
from ferret_core.algorithms.base import Client
from ferret_core.catalog import ResolvedExperiment
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.contribution import open_contribution
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate

COUNT = 6000
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ferret": {"K": 4096, "refuse_noisy_rounds": False},  # 8 kB; what they do to the model does not matter
    "ferret, sparse": {
        "basis": "H",
        "coordinates": "sparse_sign",
        "bytes_per_round": 500,
        "refuse_noisy_rounds": False,
    },
    "fedavg": {},
    "signsgd": {},
    "topk": {},
    "qsgd": {},
    "sparseloco": {},
    "demo": {},
    "fed_sb": {"coordinates": "sign", "public_examples": 1},
}
TYPED = frozenset({"contribution.malformed", "contribution.non_finite"})
LONGEST_SECONDS = 0.5
"""Of processor time; some milliseconds are usual."""
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 1e308, 2**31, 2**64, 10**400, "", "x" * 5000, "\ud800", [], {}, [0, 2**47, 2**47], [[[[]]]],
)  # fmt: skip


class Seed(NamedTuple):
    """A contribution that is accepted, and what it is accepted for."""

    blob: bytes
    experiment: ResolvedExperiment
    task: RoundTask
    shapes: Shapes


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> list[Seed]:
    """The contributions of one round of each algorithm."""
    seeds: list[Seed] = []

    def noted(replica: Replica, client: Client) -> LocalRound:
        part = contribute(replica, client)
        seeds.append(Seed(part.sealed.blob, replica.experiment, client.task, replica.shapes))
        return part

    workload = Workload(tmp_path_factory.mktemp("workload"), 2)
    evaluation = {"validation_share": 0.5, "generate_examples": 0}  # fed_sb takes one of its examples
    for label, options in ALGORITHMS.items():
        algorithm = {"name": label.partition(",")[0], **options}
        simulate(workload.spec(1, algorithm=algorithm, evaluation=evaluation), participate=noted)
    return seeds


@pytest.mark.slow
def test_what_is_changed_is_accepted_as_it_is(seeds: list[Seed]) -> None:
    assert len(seeds) == 2 * len(ALGORITHMS)
    for seed in seeds:
        assert open_contribution(seed.blob, seed.experiment, seed.task, seed.shapes).blob == seed.blob


@pytest.mark.slow
def test_thousands_are_accepted_or_refused_with_a_typed_error(seeds: list[Seed]) -> None:
    draw, codes, longest = random.Random(1), set[str](), 0.0
    for _ in range(COUNT):
        seed, blob = mutated(seeds, draw)
        used = thread_time()
        codes.add(opened(seed, blob))
        longest = max(longest, thread_time() - used)
    assert codes == {"accepted", *TYPED}
    assert longest < LONGEST_SECONDS


def opened(seed: Seed, blob: bytes) -> str:
    try:
        open_contribution(blob, seed.experiment, seed.task, seed.shapes)
    except FerretError as error:
        return error.code
    return "accepted"


def mutated(seeds: list[Seed], draw: random.Random) -> tuple[Seed, bytes]:
    """One of the seeds, and what arrives in its contribution's place; now and then the contribution itself."""
    seed = draw.choice(seeds)
    kind = draw.randrange(8)
    if kind == 0:
        return seed, draw.choice(seeds).blob  # somebody else's, or its own
    blob = bytearray(_json_changed(seed.blob, draw) if kind < 4 else seed.blob)
    for _ in range(draw.randrange(4) if kind < 7 else draw.randrange(64)):
        _change(blob, draw, draw.choice(seeds).blob)
    return seed, bytes(blob)


def _change(blob: bytearray, draw: random.Random, other: bytes) -> None:
    """Flips, cuts out, doubles, fills or moves some bytes, or takes them from another contribution."""
    start = draw.randrange(len(blob) + 1)
    end = min(len(blob), start + draw.choice((1, 1, 1, 2, 8, 64, 4096)))
    part = blob[start:end]
    match draw.randrange(6):
        case 0:
            blob[start:end] = bytes(byte ^ (1 << draw.randrange(8)) for byte in part)
        case 1:
            del blob[start:end]
        case 2:
            blob[start:start] = part
        case 3:
            blob[start:end] = bytes([draw.choice((0, 0x22, 0x7B, 0x7F, 0xFF))]) * len(part)
        case 4:
            blob[start:end] = part[::-1]
        case _:
            blob[start:end] = other[start:end]


def _json_changed(blob: bytes, draw: random.Random) -> bytes:
    """The contribution with a right length before a header in which one value is another."""
    (size,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8 : 8 + size])
    meta = json.loads(header["__metadata__"]["ferret"])
    target = draw.choice((meta, meta, header, *(entry for name, entry in header.items() if name != "__metadata__")))
    name = draw.choice([*target, "more"])
    if draw.random() < 0.2:
        target.pop(name, None)
    else:
        target[name] = deepcopy(draw.choice(VALUES))
    if "__metadata__" in header and isinstance(header["__metadata__"], dict):
        header["__metadata__"]["ferret"] = json.dumps(meta)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + blob[8 + size :]
