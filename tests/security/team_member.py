"""Process 0 of a team of two is honest, process 1 sends what it likes: ``team_member.py MARK``.

A file is at ``MARK`` if process 0 runs anything that process 1 sends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import torch
from pydantic import TypeAdapter
from torch import distributed

from ferret_core.distributed import process_group
from ferret_core.distributed.process_group import ProcessGroup, as_first
from ferret_core.protocol.errors import FerretError


class Hostile:
    """Its pickle runs a command in the process 0 that reads it."""

    def __reduce__(self) -> tuple[Callable[[str], str], tuple[str]]:
        return subprocess.getoutput, (f"test $RANK = 0 && touch {sys.argv[1]}",)


def send(data: bytes, size: int | None = None) -> None:
    """Takes part in the two exchanges of a text, as ``data`` that is said to have ``size`` bytes."""
    gathered(torch.tensor([len(data) if size is None else size]))
    if size is None:
        gathered(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def gathered(own: torch.Tensor) -> None:
    distributed.all_gather([torch.empty_like(own) for _ in range(2)], own)


def honest(team: ProcessGroup) -> None:
    adapter = TypeAdapter(list[int])
    for case in (
        lambda: team.texts(""),
        lambda: team.texts(""),
        lambda: team.texts(""),
        lambda: team.texts(""),
        lambda: team.values([], adapter),
        lambda: as_first(team, lambda: None),
    ):
        try:
            case()
            told = "fine"
        except FerretError as error:
            told = f"{error.code}: {error.detail}"
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()


def hostile() -> None:
    with suppress(Exception):  # what process 0 sends is no pickle
        distributed.all_gather_object([None, None], Hostile())
    send(b"", 1 << 60)
    send(b"", -1)
    send(b"\xff\xfe")
    send(b"[1.5]")
    send(b"[[[[[")


if __name__ == "__main__":
    with process_group.started("cpu") as found:
        assert found is not None
        honest(found) if found.is_first else hostile()
