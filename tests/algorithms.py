"""What tests of algorithms share."""

from ferret_core import discovery

NAMES = [name for name in discovery.names("ferret_core.algorithms") if name != "toy"]
"""Ferret's own, without the toy of tests/plugins."""
METADATA = 1024
"""Most bytes of a contribution's names, digests, seed, metrics and headers, as long as names are short."""
