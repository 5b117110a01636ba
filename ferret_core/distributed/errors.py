"""The typed error of a broken team."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch import distributed

from ferret_core.protocol.errors import FerretError

_SIGNS = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
"""Messages of torch, often in a plain ``RuntimeError``, when another process of the group has ended or is late."""
REMEDY = "nothing was stored; start the whole team again, with torchrun --max-restarts by itself"


def process_group_failed(reason: str) -> FerretError:
    """Creates ``process_group.failed`` with ``reason`` and the next step. The process cannot do more work with this
    team."""
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
