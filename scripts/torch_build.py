"""The choice of torch's build: PyPI's for Linux includes CUDA, and the small one is on a separate index."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts import Refusal

NAME_INDEX = "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup TORCH=cpu"


class Choice(NamedTuple):
    """``cpu`` or ``cuda``, and the reason."""

    build: str
    why: str


def choose(asked: str, platform: str, driver: bool, offers_small: Callable[[], bool]) -> Choice:
    """Returns the requested build, otherwise the small one if this machine has no NVIDIA driver and an index has it.

    Raises Refusal if the requested build is not available.
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
    """Returns True if this machine has an NVIDIA driver."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None
