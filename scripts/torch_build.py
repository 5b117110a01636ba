"""The choice of torch's build: PyPI's for Linux includes CUDA, and the small one is on PyTorch's own index."""

from __future__ import annotations

import http.client
import platform
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote
from urllib.request import urlopen

from scripts import Refusal

INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's index of the small build."""
SECONDS = 3.0
"""The longest wait for that index."""
NAME_INDEX = "PIP_EXTRA_INDEX_URL=https://… make setup TORCH=cpu"


class Choice(NamedTuple):
    """``cpu`` or ``cuda``, the reason, and the index of this build unless pip is configured with it."""

    build: str
    why: str
    index: str | None = None


def choose(
    asked: str, platform: str, driver: bool, configured: Callable[[], bool], listed: Callable[[], bool]
) -> Choice:
    """Returns the requested build, otherwise the small one if this machine has no NVIDIA driver and an index has it.

    ``configured`` searches the indexes that pip is configured with, ``listed`` searches :data:`INDEX`.
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
    why = "asked for by TORCH=cpu" if asked else "no NVIDIA driver is here"
    if configured():
        return Choice("cpu", f"{why}, and a configured index has this build")
    if listed():
        return Choice("cpu", f"{why}, and {INDEX} has this build", INDEX)
    missing = f"no index has the small build for this Python, neither a configured one nor, within 3 s, {INDEX}"
    if asked:
        raise Refusal(f"TORCH=cpu: {missing}; name another: {NAME_INDEX}")
    return Choice("cuda", f"{missing}; to name another: {NAME_INDEX}")


def has_driver() -> bool:
    """Returns True if this machine has an NVIDIA driver."""
    return Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None


def lists(version: str, index: str = INDEX) -> bool:
    """Returns True if ``index`` lists torch ``version`` for this Python and machine within :data:`SECONDS`."""
    pages: list[str] = []

    def fetch() -> None:
        url = f"{index}/torch/"
        with suppress(OSError, http.client.HTTPException), urlopen(url, timeout=SECONDS) as page:  # noqa: S310 # nosec B310
            pages.append(unquote(page.read().decode(errors="replace")))

    # In a thread, because the timeout of a connection includes neither the name's resolution nor a slow body.
    thread = Thread(target=fetch, daemon=True)
    thread.start()
    thread.join(SECONDS)
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheel = rf"torch-{re.escape(version)}-{tag}-{tag}-\w*linux\w*_{platform.machine()}\.whl"
    return any(re.search(wheel, page) for page in pages)
