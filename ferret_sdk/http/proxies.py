"""The proxy between this machine and a server, as the environment names it, and what it answers in the server's place.

HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in capitals or not, mean what they mean for curl. A server on this
machine has none.
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
    """The proxy by which the environment sends requests to ``url``."""
    scheme, host = urlsplit(url).scheme, urlsplit(url).hostname or ""
    known = getproxies()
    name = scheme if scheme in known else "all"
    if name not in known or proxy_bypass(host):
        return None
    return Proxy(known[name].rpartition("@")[2].rpartition("://")[2].rstrip("/"), f"{name.upper()}_PROXY")


def refused(url: str, proxy: Proxy | None, status: int) -> FerretError:
    """A proxy's own refusal, before the server at ``url`` was asked: ``proxy.refused``."""
    who = proxy or "the proxy"
    if status == LOGIN_NEEDED:
        variable = proxy.variable if proxy else "HTTPS_PROXY"
        advice = f"give it a name and a password that it takes: {variable}=http://NAME:PASSWORD@HOST:PORT"
        return FerretError("proxy.refused", f"{who} demands a login before it connects to {url}: {advice}")
    advice = "ask who runs your network to allow this address, or name its host in NO_PROXY if it needs no proxy"
    return FerretError("proxy.refused", f"{who} does not connect to {url} (status {status}): {advice}")


def web_page(url: str, proxy: Proxy | None, status: int, page: bytes) -> FerretError:
    """A web page where Ferret answers with data: ``server.unexpected``. It names the page, and who may have sent it."""
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
