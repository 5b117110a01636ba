"""Several processes that move one mapped model, each a separate range of its elements."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ferret_core.algorithms.base import State
from ferret_core.models.safetensors_map import Array
from ferret_core.projection.apply import moved_to
from ferret_core.projection.blocks import HeldRange, cut
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Arrays, decode, encode
from ferret_core.replica.mapped.model_files import Writer

_LENGTH = 8
STATE = "state."
"""Prefix of the names of the algorithm's arrays in a message."""


def write(pipe: BinaryIO | Any, arrays: Arrays, meta: Mapping[str, Any]) -> None:
    message = encode(arrays, meta)
    pipe.write(len(message).to_bytes(_LENGTH, "little"))
    pipe.write(message)
    pipe.flush()


def read(pipe: BinaryIO | Any) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """Reads the next message; returns None if the other side has ended."""
    length = pipe.read(_LENGTH)
    if len(length) < _LENGTH:
        return None
    size = int.from_bytes(length, "little")
    message = pipe.read(size)
    return decode(message, size) if len(message) == size else None


class MoveRequest(NamedTuple):
    """A move of the model from the files in ``before`` to the files in ``after``.

    It belongs to the round with this ``number``; ``part`` is the fraction of the update's step.
    """

    before: Path
    after: Path
    update: bytes
    state: State
    number: int
    part: float


class ProcessPool:
    """``processes`` processes including this one: the others are started here, and end with this object."""

    def __init__(
        self, spec: ExperimentSpec, names: Mapping[str, str], shapes: Mapping[str, tuple[int, ...]], processes: int
    ) -> None:
        """``names``: each parameter's name in the files."""
        own, *others = ranges(shapes, processes)
        self._own, self._names = own, names
        self._threads = max(1, torch.get_num_threads() // processes)
        told = {"spec": spec.model_dump(mode="json"), "names": dict(names), "threads": self._threads}
        self._others = [_Process({**told, "held": held}) for held in others]

    @property
    def children(self) -> list[int]:
        """Process ids of the others."""
        return [process.id for process in self._others]

    @contextmanager
    def moving(self, moved: MoveRequest, arrays: Mapping[str, Array]) -> Generator[None]:
        """Makes this process write its range of the moved elements within the block; then waits for the others.

        Raises another process's exception, and ``ChildProcessError`` if one has ended.
        """
        for process in self._others:
            process.ask(moved)
        before = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            with Writer(moved.after, arrays, self._names, self._own) as writer, moved_to(writer):
                yield
        finally:
            torch.set_num_threads(before)
            answers = [process.answer() for process in self._others]
        for error in answers:
            if error is not None:
                raise error


class _Process:
    def __init__(self, told: Mapping[str, object]) -> None:
        command = [sys.executable, "-P", "-m", "ferret_core.replica.mapped.worker_process"]
        # It ends with its standard input, even if this process is killed, and needs no signal from a terminal.
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        weakref.finalize(self, _end, self._child)
        self._send({}, told)

    @property
    def id(self) -> int:
        return self._child.pid

    def ask(self, moved: MoveRequest) -> None:
        arrays = {"update": np.frombuffer(moved.update, np.uint8)}
        arrays |= {f"{STATE}{name}": array for name, array in moved.state.items()}
        folders = {"before": str(moved.before), "after": str(moved.after)}
        self._send(arrays, {**folders, "round": moved.number, "part": moved.part})

    def answer(self) -> Exception | None:
        assert self._child.stdout is not None
        try:
            message = read(self._child.stdout)
        except OSError:
            message = None
        if message is None:
            return ChildProcessError(f"a process that moves a part of the model has ended with {self._child.wait()}")
        error = message[1]["error"]
        return None if error is None else FerretError(error["code"], error["detail"])

    def _send(self, arrays: State, meta: Mapping[str, object]) -> None:
        assert self._child.stdin is not None
        try:
            write(self._child.stdin, arrays, meta)
        except BrokenPipeError:
            return  # the process has ended; reading its answer reports it


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with suppress(BrokenPipeError):  # input that it did not read
        child.stdin.close()
    child.stdout.close()
    child.terminate()
    child.wait()


def ranges(shapes: Mapping[str, tuple[int, ...]], processes: int) -> list[dict[str, HeldRange]]:
    """Splits the model into ranges of equal length; returns each process's elements by parameter."""
    sizes = {name: torch.Size(shape).numel() for name, shape in shapes.items()}
    blocks = cut(sizes, min(processes, sum(sizes.values())))
    return [{p.parameter: HeldRange(p.begin, p.begin + p.length) for p in block.pieces} for block in blocks]
