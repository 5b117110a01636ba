"""What counts as one caller's place, where connections and requests are counted by address."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network


def network(address: str) -> str:
    """An IPv4 address, or the /64 network that one customer has of IPv6 (RFC 6177)."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or ip_network((found, 64), strict=False))
    return str(found)
