"""Contributions to a sum with central noise: 32 random bytes, then the participant's packed integers.

The ledger, receipts and events have each contribution's digest. A digest of the integers alone would reveal whether
a record is among them to all who can guess the rest, whatever the noise. The random bytes, which only participant and
server have, make the digest a commitment: it binds the participant and reveals nothing.
"""

from __future__ import annotations

import secrets

from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.wire import malformed
from ferret_core.secure.packing import Entries, Layout

NONCE_BYTES = 32


def commit(integers: Entries, layout: Layout) -> Pieces:
    """Returns the contribution of ``integers``, with fresh random bytes."""
    return secrets.token_bytes(NONCE_BYTES), *layout.pack([integers])


def committed_size(layout: Layout) -> int:
    """Returns the bytes of a contribution."""
    return NONCE_BYTES + layout.size


def committed_vector(contribution: bytes | memoryview, layout: Layout) -> memoryview:
    """Returns the packed vector in a contribution; raises ``contribution.malformed`` unless the layout has it."""
    if len(contribution) != committed_size(layout):
        raise malformed("body", len(contribution), f"a contribution to this round has {committed_size(layout)} bytes")
    vector = memoryview(contribution)[NONCE_BYTES:]
    layout.check(vector)
    return vector
