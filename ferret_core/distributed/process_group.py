"""The team of this process: started once, available to all code that uses shards, and stopped at the end.

Every method of :class:`ProcessGroup` is collective: all its processes must call it at the same point of their work.
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
from ferret_core.distributed.environment import ProcessRank
from ferret_core.protocol.errors import PROBLEMS, FerretError

_SIGNS = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
"""Messages of torch, often in a plain ``RuntimeError``, when another process of the group has ended or is late."""
REMEDY = "nothing was stored; start the whole team again; torchrun --max-restarts does so automatically"
SETTING = "FERRET_COLLECTIVE_TIMEOUT_SECONDS"
LINGER_SECONDS = 3.0
"""Time that the process with the store waits for the others at the end."""
RESTARTS = "TORCHELASTIC_RESTART_COUNT"
"""Number of times that torchrun has restarted the team, with a store that may be the same."""
DEFAULT_SECONDS = 600.0
"""Maximum time that one process may keep the others waiting: a step on a slow machine, not an outage."""

MAX_TEXT_BYTES = 1 << 20
"""Maximum length of one process's text. The longest has the sizes of a model's shards, about ten bytes per
parameter."""

V = TypeVar("V")
_CODE_AND_DETAIL = TypeAdapter(tuple[str, str] | None)

_current: ProcessGroup | None = None


def process_group_failed(reason: str) -> FerretError:
    """Creates ``process_group.failed`` with ``reason`` and the next step; this team cannot do more work."""
    return FerretError("process_group.failed", f"{reason}: {REMEDY}")


@contextmanager
def typed() -> Generator[None]:
    """Converts torch's exceptions about ended or late processes to ``process_group.failed``."""
    try:
        yield
    except RuntimeError as error:
        if not is_of_group(error):
            raise
        raise process_group_failed(
            f"another process of the team is gone or did not answer in time ({_first(error)})"
        ) from error


def is_of_group(error: BaseException) -> bool:
    """True if ``error`` is a failure of communication between the processes of the group."""
    return isinstance(error, distributed.DistError) or any(sign in str(error) for sign in _SIGNS)


def _first(error: BaseException) -> str:
    line = str(error).partition("\n")[0]
    return line.rpartition("] ")[2][:200] or type(error).__name__


class ProcessGroup:
    """The processes, and their collectives. Vectors are flat; integers count elements.

    ``store`` holds their messages outside of collectives. ``settled`` is the last piece of work with an outcome that
    all of them have read. A process keeps the others waiting for at most ``seconds``.
    """

    def __init__(self, where: ProcessRank, store: Any, device: str, seconds: float) -> None:
        from torch.distributed.device_mesh import init_device_mesh

        self.rank, self.size, self.seconds = where.rank, where.size, seconds
        self.device = torch.device(device, where.local) if device == "cuda" else torch.device(device)
        self.store = store
        self.settled: str | None = None
        self.mesh = init_device_mesh(device, (where.size,))

    @property
    def is_first(self) -> bool:
        """True in the process that communicates with the outside for all of them."""
        return self.rank == 0

    def send(self, values: Tensor, to: int) -> None:
        """Sends a contiguous vector to a process that calls :meth:`receive`."""
        with typed():
            distributed.send(values, to)

    def receive(self, into: Tensor, source: int) -> None:
        """Fills a contiguous vector with data from ``source``."""
        with typed():
            distributed.recv(into, source)

    def told(self, values: Tensor, source: int) -> Tensor:
        """Copies ``values`` of ``source`` into the ``values`` of every other process."""
        with typed():
            distributed.broadcast(values, source)
        return values

    def summed(self, values: Tensor) -> Tensor:
        """Sums all processes' ``values`` in place, in no defined order."""
        with typed():
            distributed.all_reduce(values)
        return values

    def exchanged(self, chunks: Tensor) -> Tensor:
        """Exchanges rows (size, n): row j of process i becomes row i of process j."""
        received = torch.empty_like(chunks)
        with typed():
            distributed.all_to_all_single(received, chunks)
        return received

    def numbers(self, value: float) -> list[float]:
        """Returns the ``value`` of every process in fp64, by rank."""
        own = torch.tensor([value], dtype=torch.float64, device=self.device)
        return [float(each) for each in self._gathered(own)]

    def texts(self, text: str) -> list[str]:
        """Returns the ``text`` of every process, by rank: as bytes, because torch's own functions for objects unpickle
        them.

        Raises ``process_group.failed`` if a process sends more than ``MAX_TEXT_BYTES`` or invalid UTF-8.
        """
        sent = text.encode()
        own = torch.tensor([len(sent)], dtype=torch.int64, device=self.device)
        lengths = [int(each) for each in self._gathered(own)]
        for rank, length in enumerate(lengths):
            if not 0 <= length <= MAX_TEXT_BYTES:
                raise process_group_failed(
                    f"process {rank} sends a text of {length} bytes; the maximum is {MAX_TEXT_BYTES}"
                )
        padded = bytearray(sent.ljust(max(1, *lengths), b"\0"))
        found = self._gathered(torch.frombuffer(padded, dtype=torch.uint8).to(self.device))
        return [_decoded(rank, each[:length]) for rank, (each, length) in enumerate(zip(found, lengths, strict=True))]

    def values(self, value: V, kind: TypeAdapter[V]) -> list[V]:
        """Returns the ``value`` of every process, by rank: as JSON of this ``kind``.

        Raises ``process_group.failed`` like :meth:`texts`, and if a process sends another kind of JSON.
        """
        return [_parsed(rank, text, kind) for rank, text in enumerate(self.texts(kind.dump_json(value).decode()))]

    def same(self, what: str, text: str) -> None:
        """Raises ``process_group.failed`` unless all processes have the same ``text`` for ``what``."""
        found = self.texts(text)
        for rank, other in enumerate(found):
            if other != found[0]:
                raise process_group_failed(
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
        raise process_group_failed(f"process {rank} sends a text that is not UTF-8") from error


def _parsed(rank: int, text: str, kind: TypeAdapter[V]) -> V:
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        raise process_group_failed(f"process {rank} sends JSON of another kind") from error


def current() -> ProcessGroup | None:
    """Returns the team of this process; None for a single process."""
    return _current


def require() -> ProcessGroup:
    """Returns the team; for code that has a shard."""
    assert _current is not None, "a shard is there only within a team"
    return _current


@contextmanager
def started(device: str) -> Generator[ProcessGroup | None]:
    """Joins the team in the environment during the ``with`` block; yields None without a team.

    ``device``, "cpu" or "cuda", is the models' device. Raises ``settings.invalid`` for an invalid environment, and
    ``process_group.failed`` if the others do not join.
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


def _leave(team: ProcessGroup) -> None:
    """Leaves the team. The first process, which may hold the store, leaves last: others read the outcome from it."""
    try:
        team.store.set(f"left/{team.rank}", "")
        if team.is_first:
            team.store.wait([f"left/{rank}" for rank in range(team.size)], timedelta(seconds=LINGER_SECONDS))
    except (distributed.DistError, RuntimeError):
        return  # another process has ended unexpectedly


def _start(where: ProcessRank, device: str) -> ProcessGroup:
    # Not every build of torch has them, and a single process needs none.
    from torch._C._distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    if device == "cuda":
        _take_gpu(where)
    seconds = _seconds()
    wait = timedelta(seconds=seconds)
    try:
        store, _, _ = next(iter(rendezvous("env://", where.rank, where.size, timeout=wait)))
        store.set_timeout(wait)
        # Entries of ended processes must not affect a restarted team.
        store = PrefixStore(f"start-{os.environ.get(RESTARTS, '0')}", store)
        backend = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        group = PrefixStore("group", store)
        distributed.init_process_group(backend, store=group, rank=where.rank, world_size=where.size, timeout=wait)
        return ProcessGroup(where, PrefixStore("ferret", store), device, seconds)
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise process_group_failed(
            f"{environment.SIZE} = {where.size} processes have not come within {seconds:g} s ({reason})"
        ) from error


def _take_gpu(where: ProcessRank) -> None:
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
    """Splits 0 … ``count`` − 1 into turns of ``width``, one item per process."""
    return [range(first, min(first + width, count)) for first in range(0, count, width)]


def as_first(team: ProcessGroup, check: Callable[[], None]) -> None:
    """Calls ``check()`` in the first process, and raises its :class:`FerretError` in every process. Collective."""
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
            raise process_group_failed("process 0 sends an error that does not exist")
        raise FerretError(code, detail)
