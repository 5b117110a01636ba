"""The team of this process: started once, found by everyone who meets a shard, stopped at the end.

Every method of :class:`Team` is collective: all its processes call it at the same point of their work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, distributed

from ferret_core.distributed import environment
from ferret_core.distributed.environment import Place
from ferret_core.distributed.errors import team_broken, typed
from ferret_core.protocol.errors import PROBLEMS, FerretError

SETTING = "FERRET_TEAM_SECONDS"
LINGER_SECONDS = 3.0
"""For which the process that may keep the store waits for the others at the end."""
RESTARTS = "TORCHELASTIC_RESTART_COUNT"
"""How often torchrun has started the team again, with a store that may be the same."""
DEFAULT_SECONDS = 600.0
"""As long as one process may keep the others waiting: a step on a slow machine, not an outage."""

MAX_TEXT_BYTES = 1 << 20
"""Of one process' text. The longest is the sizes of a model's shards, some ten bytes a parameter."""

V = TypeVar("V")
_CODE_AND_DETAIL = TypeAdapter(tuple[str, str] | None)

_current: Team | None = None


class Team:
    """The processes, and what they can do together. Vectors are flat; integers count elements.

    ``store`` holds what they say to each other outside of collectives, ``settled`` names the last piece of work whose
    outcome they know of each other. One keeps the others waiting for at most ``seconds``.
    """

    def __init__(self, where: Place, store: Any, device: str, seconds: float) -> None:
        from torch.distributed.device_mesh import init_device_mesh

        self.rank, self.size, self.seconds = where.rank, where.size, seconds
        self.device = torch.device(device, where.local) if device == "cuda" else torch.device(device)
        self.store = store
        self.settled: str | None = None
        self.mesh = init_device_mesh(device, (where.size,))

    @property
    def is_first(self) -> bool:
        """Whether this is the process that speaks to the world for all of them."""
        return self.rank == 0

    def send(self, values: Tensor, to: int) -> None:
        """Sends a contiguous vector to a process that calls :meth:`receive`."""
        with typed():
            distributed.send(values, to)

    def receive(self, into: Tensor, source: int) -> None:
        """Fills a contiguous vector with what ``source`` sends."""
        with typed():
            distributed.recv(into, source)

    def told(self, values: Tensor, source: int) -> Tensor:
        """``values`` as ``source`` has them, written into those of every other process."""
        with typed():
            distributed.broadcast(values, source)
        return values

    def summed(self, values: Tensor) -> Tensor:
        """The sum of all processes' ``values``, in their place, in no defined order."""
        with typed():
            distributed.all_reduce(values)
        return values

    def exchanged(self, chunks: Tensor) -> Tensor:
        """(size, n): row j of process i becomes row i of process j."""
        received = torch.empty_like(chunks)
        with typed():
            distributed.all_to_all_single(received, chunks)
        return received

    def numbers(self, value: float) -> list[float]:
        """The ``value`` of every process in fp64, by rank."""
        own = torch.tensor([value], dtype=torch.float64, device=self.device)
        return [float(each) for each in self._gathered(own)]

    def texts(self, text: str) -> list[str]:
        """The ``text`` of every process, by rank: as bytes, since torch's own functions for objects unpickle them.

        Raises ``team.broken`` if a process sends more than ``MAX_TEXT_BYTES`` or no UTF-8.
        """
        sent = text.encode()
        own = torch.tensor([len(sent)], dtype=torch.int64, device=self.device)
        lengths = [int(each) for each in self._gathered(own)]
        for rank, length in enumerate(lengths):
            if not 0 <= length <= MAX_TEXT_BYTES:
                raise team_broken(f"process {rank} sends a text of {length} bytes; the most is {MAX_TEXT_BYTES}")
        padded = bytearray(sent.ljust(max(1, *lengths), b"\0"))
        found = self._gathered(torch.frombuffer(padded, dtype=torch.uint8).to(self.device))
        return [_decoded(rank, each[:length]) for rank, (each, length) in enumerate(zip(found, lengths, strict=True))]

    def values(self, value: V, kind: TypeAdapter[V]) -> list[V]:
        """The ``value`` of every process, by rank: as JSON of this ``kind``.

        Raises ``team.broken`` as :meth:`texts` does, and if a process sends another kind of JSON.
        """
        return [_parsed(rank, text, kind) for rank, text in enumerate(self.texts(kind.dump_json(value).decode()))]

    def same(self, what: str, text: str) -> None:
        """Raises ``team.broken`` unless all processes give the same ``text`` for ``what``."""
        found = self.texts(text)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise team_broken(
                    f"process {rank} has another {what} than process 0: {other[:80]}, not {found[0][:80]}"
                )

    def _gathered(self, own: Tensor) -> list[Tensor]:
        found = [torch.empty_like(own) for _ in range(self.size)]
        with typed():
            distributed.all_gather(found, own)
        return found


def _decoded(rank: int, sent: Tensor) -> str:
    try:
        return sent.cpu().numpy().tobytes().decode()
    except UnicodeDecodeError as error:
        raise team_broken(f"process {rank} sends a text that is not UTF-8") from error


def _parsed(rank: int, text: str, kind: TypeAdapter[V]) -> V:
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        raise team_broken(f"process {rank} sends JSON of another kind") from error


def current() -> Team | None:
    """The team that this process is in; None for a process alone."""
    return _current


def require() -> Team:
    """The team; for code that has a shard in its hands."""
    assert _current is not None, "a shard is there only within a team"
    return _current


@contextmanager
def started(device: str) -> Generator[Team | None]:
    """In the ``with`` block this process is in the team that the environment tells of; None where it tells of none.

    ``device``, "cpu" or "cuda", is where models are. Raises ``settings.invalid`` for an environment that cannot be, and
    ``team.broken`` where the others do not come.
    """
    global _current
    where = environment.from_environment()
    if where is None:
        yield None
        return
    _current = _start(where, device)
    try:
        yield _current
    finally:
        _leave(_current)
        _current = None
        distributed.destroy_process_group()


def _leave(team: Team) -> None:
    """The first process, which may keep the store, goes last: others read from it how the work ended."""
    try:
        team.store.set(f"left/{team.rank}", "")
        if team.is_first:
            team.store.wait([f"left/{rank}" for rank in range(team.size)], timedelta(seconds=LINGER_SECONDS))
    except (distributed.DistError, RuntimeError):
        return  # somebody went without a word


def _start(where: Place, device: str) -> Team:
    # Not every build of torch has them, and a process alone needs none.
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    if device == "cuda":
        _take_gpu(where)
    seconds = _seconds()
    wait = timedelta(seconds=seconds)
    try:
        store, _, _ = next(iter(rendezvous("env://", where.rank, where.size, timeout=wait)))
        store.set_timeout(wait)
        # What processes that are gone have left in it leads nowhere.
        store = PrefixStore(f"start-{os.environ.get(RESTARTS, '0')}", store)
        backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        group = PrefixStore("group", store)
        distributed.init_process_group(backend, store=group, rank=where.rank, world_size=where.size, timeout=wait)
        return Team(where, PrefixStore("ferret", store), device, seconds)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise team_broken(
            f"{environment.SIZE} = {where.size} processes have not come within {seconds:g} s ({reason})"
        ) from error


def _take_gpu(where: Place) -> None:
    count = torch.cuda.device_count()
    if where.local >= count:
        message = f"this machine has {count} GPUs: start one process for each, torchrun --nproc-per-node {count}"
        raise FerretError.of_field("settings.invalid", environment.LOCAL_RANK, where.local, message)
    torch.cuda.set_device(where.local)


def _seconds() -> float:
    text = os.environ.get(SETTING, "") or str(DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 10**6:
        raise FerretError.of_field(
            "settings.invalid", SETTING, text, "must be a number of seconds above 0, such as 600"
        )
    return seconds


def waves(count: int, width: int) -> Sequence[range]:
    """0 … ``count`` − 1 in turns of ``width``: what a team does at once, a piece each."""
    return [range(first, min(first + width, count)) for first in range(0, count, width)]


def as_first(team: Team, check: Callable[[], None]) -> None:
    """Raises in every process the :class:`FerretError` that ``check()`` raises in the first one, which alone calls it.
    Collective."""
    error: FerretError | None = None
    if team.is_first:
        try:
            check()
        except FerretError as found:
            error = found
    told = team.values(None if error is None else (error.code, error.detail), _CODE_AND_DETAIL)[0]
    if error is not None:
        raise error
    if told is not None:
        code, detail = told
        if code not in PROBLEMS:
            raise team_broken("process 0 sends an error that does not exist")
        raise FerretError(code, detail)
