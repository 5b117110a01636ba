"""Networks of client addresses, the unit of connection and request limits."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Networks = Sequence[IPv4Network | IPv6Network]


def network(address: str) -> str:
    """Returns an IPv4 address unchanged, and for IPv6 the /64 network of one customer (RFC 6177)."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)


def networks(listed: str) -> Networks:
    """Parses addresses and networks separated by commas; raises ``ValueError`` for an invalid one."""
    return [ip_network(network) for network in filter(None, map(str.strip, listed.split(",")))]


def is_within(address: str, among: Networks) -> bool:
    """Returns True if the address is in one of the networks."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return any(found in network for network in among)
