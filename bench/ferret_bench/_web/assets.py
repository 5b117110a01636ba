"""The dashboard's network traffic."""

from __future__ import annotations

import gzip
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from ferret_api.http.dashboard import ASSETS, STATIC


def javascript() -> list[Path]:
    """Returns all scripts of the built dashboard, including lazily loaded ones."""
    return sorted((STATIC / ASSETS).glob("*.js"))


def measured(port: int, first: set[str]) -> dict[str, Any]:
    """Returns ``gzip_bytes`` of all scripts together, and of the ones named ``first`` alone, and the share of them, 0
    to 1, that the API on ``port`` compresses.
    """
    scripts = javascript()
    sizes = {script.name: len(gzip.compress(script.read_bytes(), 9)) for script in scripts}
    return {
        "files": len(scripts),
        "bytes": sum(script.stat().st_size for script in scripts),
        "gzip_bytes": sum(sizes.values()),
        "first_load_gzip_bytes": sum(sizes[name] for name in first),
        "compressed": sum(_is_compressed(port, script) for script in scripts) / len(scripts),
    }


def _is_compressed(port: int, script: Path) -> bool:
    """Returns True if a browser receives it compressed, or it is too small to gain from that."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", f"/{ASSETS}/{script.name}", headers={"Accept-Encoding": "gzip, br"})
        answer = connection.getresponse()
        received = len(answer.read())
        return answer.status == 200 and (received < script.stat().st_size or received < 1024)
    finally:
        connection.close()
