"""This process's place in a team, from the environment of ``torchrun``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError

RANK, SIZE, LOCAL_RANK, ADDRESS, PORT = "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"


class ProcessRank(NamedTuple):
    """``rank`` counts from 0 to ``size`` − 1 over the team, ``local`` over its processes on this machine."""

    rank: int
    size: int
    local: int


def from_environment(environment: Mapping[str, str] | None = None) -> ProcessRank | None:
    """Reads the place from the environment; returns None for a single process.

    Raises ``settings.invalid`` if it is incomplete or invalid.
    """
    told = os.environ if environment is None else environment
    if SIZE not in told or told[SIZE] == "1":
        return None
    for name in (RANK, ADDRESS, PORT):
        if name not in told:
            raise _invalid(name, None, f"is not set, but {SIZE} is: start the processes with torchrun, or unset {SIZE}")
    rank, size, local = _number(told, RANK), _number(told, SIZE), _number(told, LOCAL_RANK)
    if size < 1:
        raise _invalid(SIZE, told[SIZE], "must be 1 or more: start the processes with torchrun --nproc-per-node N")
    if rank >= size:
        raise _invalid(RANK, told[RANK], f"must be below {SIZE} = {size}: start the processes with torchrun")
    return ProcessRank(rank, size, local)


def _number(told: Mapping[str, str], name: str) -> int:
    text = told.get(name, "0")
    if not (text.isascii() and text.isdecimal()):
        raise _invalid(name, text, "must be a number: start the processes with torchrun")
    return int(text)


def _invalid(name: str, value: str | None, message: str) -> FerretError:
    return FerretError.of_field("settings.invalid", name, value, message)
