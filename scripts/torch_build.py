"""Which build of torch is installed: PyPI's for Linux brings CUDA, and the small one lies on an index of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.refusal import Refusal

NAME_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup TORCH=cpu"


class Choice(NamedTuple):
    """``cpu`` or ``cuda``, and why."""

    build: str
    why: str


def choose(asked: str, platform: str, driver: bool, offers_small: Callable[[], bool]) -> Choice:
    """The build that was ``asked`` for, else the small one where no NVIDIA driver is and an index has it.

    Raises Refusal where the build asked for cannot be had.
    """
    if asked not in {"", "cpu", "cuda"}:
        raise Refusal(f"TORCH={asked}: must be cpu or cuda")
    if platform != "linux":
        if asked == "cuda":
            raise Refusal(f"TORCH=cuda: PyPI has no CUDA build of torch for {platform}; leave TORCH out")
        return Choice("cpu", f"PyPI's build for {platform}")
    if asked == "cuda":
        return Choice("cuda", "asked for by TORCH=cuda")
    if driver and not asked:
        return Choice("cuda", "an NVIDIA driver is here")
    if offers_small():
        return Choice(
            "cpu", "asked for by TORCH=cpu" if asked else "no NVIDIA driver is here, and an index has this build"
        )
    if asked:
        raise Refusal(f"TORCH=cpu: no configured index has this build for this Python; name one: {NAME_INDEX}")
    return Choice("cuda", f"no configured index has the small build; to name one: {NAME_INDEX}")


def has_driver() -> bool:
    """Whether this machine has an NVIDIA driver."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None
