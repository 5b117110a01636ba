"""A network namespace behind a slow, lossy link: for kernels without ``tc netem``, needs root and /dev/net/tun.

Two TUN devices, one here and one in the namespace, and this process between them, which holds every packet back for
a while and drops some of them, in both directions. TCP at both ends is the kernel's own.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from ipaddress import IPv4Interface
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

TUN = Path("/dev/net/tun")
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
"""From linux/if_tun.h."""
HERE, THERE = IPv4Interface("10.77.0.1/30"), IPv4Interface("10.77.0.2/30")
LONGEST_PACKET = 1 << 16
LOOK_SECONDS = 0.05


class Link(NamedTuple):
    """``delay`` in seconds and the share of packets that are lost, each way."""

    delay: float = 0.3
    loss: float = 0.1


def prefix(namespace: str) -> Sequence[str]:
    """Returns the prefix of a command that runs in the namespace."""
    return ("ip", "netns", "exec", namespace)


def is_permitted() -> bool:
    return os.geteuid() == 0 and TUN.exists() and subprocess.run(["ip", "-V"], capture_output=True).returncode == 0


@contextmanager
def lossy(namespace: str, link: Link, seed: int = 0) -> Generator[None]:
    """Creates ``namespace`` for the ``with`` block. From it only ``HERE`` can be reached, over the link."""
    here, there = _device("ferret-here"), _device("ferret-there")
    ended = threading.Event()
    carrier = threading.Thread(target=_carry, args=(here, there, link, Random(seed), ended))
    try:
        _ip("netns", "add", namespace)
        _ip("link", "set", "ferret-there", "netns", namespace)
        _ip("address", "add", str(HERE), "dev", "ferret-here")
        _ip("link", "set", "ferret-here", "up")
        _ip("-n", namespace, "address", "add", str(THERE), "dev", "ferret-there")
        _ip("-n", namespace, "link", "set", "ferret-there", "up")
        _ip("-n", namespace, "link", "set", "lo", "up")
        carrier.start()
        yield
    finally:
        ended.set()
        if carrier.ident is not None:
            carrier.join()
        with suppress(subprocess.CalledProcessError):
            _ip("netns", "delete", namespace)
        os.close(here)
        os.close(there)


def _device(name: str) -> int:
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def _carry(here: int, there: int, link: Link, draw: Random, ended: threading.Event) -> None:
    """Passes each packet on, ``link.delay`` seconds after it arrived."""
    other = {here: there, there: here}
    under_way = list[tuple[float, int, int, bytes]]()
    number = 0
    while not ended.is_set():
        wait = min(LOOK_SECONDS, max(0.0, under_way[0][0] - monotonic())) if under_way else LOOK_SECONDS
        for device in select.select([here, there], [], [], wait)[0]:
            packet = os.read(device, LONGEST_PACKET)
            if draw.random() >= link.loss:
                number += 1
                heapq.heappush(under_way, (monotonic() + link.delay, number, other[device], packet))
        while under_way and under_way[0][0] <= monotonic():
            _, _, device, packet = heapq.heappop(under_way)
            with suppress(OSError):  # a full queue loses packets too
                os.write(device, packet)
