"""One process of a team that goes through pieces of work in which something goes wrong: ``member.py CASE …``."""

from __future__ import annotations

import os
import signal
import sys

import torch

from ferret_core.distributed import barrier, process_group
from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.protocol.errors import FerretError

barrier.GRACE_SECONDS = 2.0


def work(case: str, team: ProcessGroup) -> str:
    last = team.rank == team.size - 1
    team.numbers(1.0)
    match case:
        case "all fail":
            raise FerretError("training.non_finite", f"the loss of process {team.rank} is no number")
        case "one fails" if last:
            raise FerretError("storage.full", "no space left on this device")
        case "one is killed" if last:
            os.kill(os.getpid(), signal.SIGKILL)
        case "other results":
            return f"result {team.rank}"
        case "other models":
            team.same("model", f"digest {team.rank}")
        case "one hangs" if last:
            signal.pause()
        case _:
            pass
    team.told(torch.zeros(4), team.size - 1)
    return "result"


def ended(team: ProcessGroup, case: str) -> str:
    try:
        return barrier.together(team, case, lambda: work(case, team), str)
    except FerretError as error:
        return f"{error.code}: {error.detail}"


def main() -> None:
    try:
        with process_group.started("cpu") as team:
            assert team is not None
            for case in sys.argv[1:]:
                sys.stdout.write(f"{ended(team, case)}\n")
                sys.stdout.flush()
    except FerretError as error:
        sys.stdout.write(f"{error.code}: {error.detail}\n")


if __name__ == "__main__":
    main()
