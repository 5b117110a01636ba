"""The proxy between this machine and a server, from the environment, and its responses in the server's place.

HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in upper or lower case, have the same meaning as for curl. A server on
this machine is reached directly.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ferret_core.protocol.errors import FerretError

LOGIN_NEEDED = 407
"""RFC 9110, section 15.5.8."""
LONGEST_TITLE = 100
_TITLE = re.compile(rb"<title[^>]*>([^<]{1,1000})", re.IGNORECASE)


class Proxy(NamedTuple):
    """A proxy without its name and password, and the variable that names it."""

    address: str
    variable: str

    def __str__(self) -> str:
        return f"the proxy {self.address} ({self.variable})"


def of(url: str) -> Proxy | None:
    """Returns the proxy that the environment sets for ``url``."""
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    known = getproxies()
    name = scheme if scheme in known else "all"
    if name not in known or proxy_bypass(host):
        return None
    return Proxy(known[name].rpartition("@")[2].rpartition("://")[2].rstrip("/"), f"{name.upper()}_PROXY")


def refused(url: str, proxy: Proxy | None, status: int) -> FerretError:
    """Returns ``proxy.refused``: the proxy refused before it contacted the server at ``url``."""
    who = proxy or "the proxy"
    if status == LOGIN_NEEDED:
        variable = proxy.variable if proxy else "HTTPS_PROXY"
        advice = f"give it a name and a password that it takes: {variable}=http://NAME:PASSWORD@HOST:PORT"
        return FerretError("proxy.refused", f"{who} demands a login before it connects to {url}: {advice}")
    advice = "ask who runs your network to allow this address, or name its host in NO_PROXY if it needs no proxy"
    return FerretError("proxy.refused", f"{who} does not connect to {url} (status {status}): {advice}")


def web_page(url: str, proxy: Proxy | None, status: int, page: bytes) -> FerretError:
    """Returns ``server.unexpected`` for a web page in place of data. It names the page and its possible sender."""
    found = _TITLE.search(page)
    title = f" titled {_words(found[1])!r}" if found else ""
    who = str(proxy) if proxy else "a proxy, a firewall or a network's login page"
    return FerretError(
        "server.unexpected",
        f"{url} answered with a web page{title} (status {status}), which Ferret never does: if this is the address of "
        f"a Ferret server, {who} answered in its place; ask who runs your network to allow it",
    )


def _words(title: bytes) -> str:
    return " ".join(title.decode(errors="replace").split())[:LONGEST_TITLE]
