"""The harness of test_fuzz_wire.py: ``python fuzz_wire.py [libFuzzer's options] CORPUS``.

A process of its own, because libFuzzer ends it. Anything but a typed refusal is a crash.
"""

from __future__ import annotations

import struct
import sys

import atheris

with atheris.instrument_imports(include=["ferret_core.protocol"]):
    from ferret_core.protocol.errors import FerretError
    from ferret_core.protocol.wire import Contribution

TYPED = {"contribution.malformed", "contribution.non_finite"}


def decode(blob: bytes) -> None:
    for candidate in (blob, framed(blob)):
        try:
            Contribution.decode(candidate)
        except FerretError as error:
            if error.code not in TYPED:
                raise


def framed(blob: bytes) -> bytes:
    """The same bytes with a right length before the header, so that most reach what lies behind it."""
    end = blob.rfind(b"}", 8) + 1
    return struct.pack("<Q", max(end - 8, 0)) + blob[8:]


if __name__ == "__main__":
    atheris.Setup(sys.argv, decode)
    atheris.Fuzz()
