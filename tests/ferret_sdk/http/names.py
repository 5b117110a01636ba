"""A plug-in of proxy.py: every host name leads to this machine, so that a proxy's tests need no DNS."""

from __future__ import annotations

from typing import Any

from proxy.http.proxy import HttpProxyBasePlugin


class HereForEveryName(HttpProxyBasePlugin):
    def resolve_dns(self, host: str, port: int) -> tuple[str | None, Any]:
        return "127.0.0.1", None
