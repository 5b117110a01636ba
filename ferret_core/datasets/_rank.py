"""The order in which examples are held out where nothing else decides it: that of the BLAKE3 digests of their text.

It needs no seed and does not depend on the order of the lines, so every process that reads a file holds out the same.
"""

from __future__ import annotations

from ferret_core.datasets._base import Example
from ferret_core.protocol.digest import digest_json


def rank(example: Example) -> str:
    """The smallest ranks are held out; equal for examples that differ in what else is accepted alone."""
    return digest_json([example.instruction, example.input, example.output, example.label])
