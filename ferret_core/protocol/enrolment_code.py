"""Enrolment codes: a part that identifies the server, then the secret, as ``4f1c.SECRET``.

The first part helps people who present a code to the wrong server, and grants nothing. It is only the beginning of the
server's ``instance``: the admin token follows from the instance, so a code must reveal almost nothing of it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError

DIGITS = 4
_NAMING = re.compile(rf"(?P<issuer>[0-9a-f]{{{DIGITS}}})\.(?P<secret>.+)")  # a secret is base64url, without a dot


class EnrolmentCode(NamedTuple):
    """A parsed code. ``issuer`` identifies the server that created it."""

    issuer: str
    secret: str

    @classmethod
    def read(cls, text: str) -> EnrolmentCode:
        """Parses a code; raises ``enrolment.invalid``."""
        named = _NAMING.fullmatch(text)
        if named is None:
            detail = f"a code begins with {DIGITS} hexadecimal digits and a dot; check it, or ask for a new one"
            raise FerretError("enrolment.invalid", detail)
        return cls(named["issuer"], named["secret"])

    @classmethod
    def of(cls, instance: str, secret: str) -> EnrolmentCode:
        """Returns the code that the server ``instance`` creates from the secret."""
        return cls(instance[:DIGITS], secret)

    def names_another(self, instance: str) -> bool:
        """True if the code was created by another server than ``instance``."""
        return self.issuer != instance[:DIGITS]

    def __str__(self) -> str:
        return f"{self.issuer}.{self.secret}"
