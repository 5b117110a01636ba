"""Addresses that webhooks may reach: public ones, and private networks that the operator allows.

The address is checked when the connection is made, so changing a name's address later does not circumvent the check.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import cast
from urllib.parse import urlsplit

import httpcore2

from ferret_api.client_network import networks as parsed
from ferret_core.protocol.errors import FerretError

Address = IPv4Address | IPv6Address

_TRANSLATED = ip_network("64:ff9b::/96")
"""NAT64 (RFC 6052): the last 32 bits are an IPv4 address."""
_GLOBAL_UNICAST = ip_network("2000::/3")
"""Public IPv6 addresses (RFC 4291, section 2.4), without site-local, IPv4-compatible and IPv4-translated ones."""


class Allowed:
    """The public addresses and the operator's ``networks``, separated by commas."""

    def __init__(self, networks: str) -> None:
        self._networks = parsed(networks)

    def holds(self, address: Address) -> bool:
        """Returns True if a webhook may reach the address."""
        inner = _inner(address)
        return _is_public(inner) or any(inner in network for network in self._networks)

    def require(self, host: str, addresses: Iterable[Address]) -> list[Address]:
        """Returns the allowed addresses of the host; raises ``request.invalid`` without any.

        The error is the same for a name that does not exist and for one in a private network, so that it reveals
        nothing about that network.
        """
        found = [address for address in addresses if self.holds(address)]
        if not found:
            reason = "has no public address: use one, or have FERRET_ALERT_NETWORKS name its private network"
            raise FerretError.of_field("request.invalid", "address", host, reason)
        return found


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    """Network backend that connects only to allowed addresses, by the address that it has checked."""

    def __init__(self, allowed: Allowed) -> None:
        self._allowed = allowed
        self._network = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, proto=6)
        except socket.gaierror:
            found = []
        addresses = dict.fromkeys(ip_address(str(place[0]).partition("%")[0]) for *_, place in found)
        problem: Exception = httpcore2.ConnectError(f"{host} cannot be reached")
        for address in self._allowed.require(host, addresses):
            try:
                return await self._network.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except httpcore2.ConnectError as error:
                problem = error
        raise problem


def require_webhook(url: str, allowed: Allowed) -> None:
    """Raises ``request.invalid`` for an invalid webhook URL. Does not resolve host names."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or port == 0:
        reason = "give an address such as https://hooks.example.org/ferret, without a user"
        raise FerretError.of_field("request.invalid", "address", url, reason)
    try:
        literal = ip_address(parts.hostname)
    except ValueError:
        return
    allowed.require(parts.hostname, [literal])


def _is_public(address: Address) -> bool:
    in_use = address.version == 4 or address in _GLOBAL_UNICAST
    return in_use and address.is_global and not address.is_multicast


def _inner(address: Address) -> Address:
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
