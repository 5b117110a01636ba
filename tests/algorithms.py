"""The names of Ferret's own algorithms, without the toy of tests/plugins."""

from ferret_core import discovery

NAMES = [name for name in discovery.names("ferret_core.algorithms") if name != "toy"]
