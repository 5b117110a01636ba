"""What counts as one caller's place, where connections and requests are counted by address."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Networks = Sequence[IPv4Network | IPv6Network]


def network(address: str) -> str:
    """An IPv4 address, or the /64 network that one customer has of IPv6 (RFC 6177)."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)


def networks(listed: str) -> Networks:
    """Addresses and networks that are separated by commas; raises ``ValueError`` for what is neither."""
    return [ip_network(network) for network in filter(None, map(str.strip, listed.split(",")))]


def is_within(address: str, among: Networks) -> bool:
    """Whether the address lies in one of the networks."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    return any(found in network for network in among)
