"""How an enrolment code is spelt: which server made it, then the secret, as ``4f1c.SECRET``.

The first part is for people who show a code to the wrong server, and opens nothing. It is the beginning of the server's
``instance``, and no more of it: who holds a code shall learn next to nothing of the admin token that the instance
follows from.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError

DIGITS = 4
_NAMING = re.compile(rf"(?P<issuer>[0-9a-f]{{{DIGITS}}})\.(?P<secret>.+)")  # a secret is base64url, without a dot


class EnrolmentCode(NamedTuple):
    """A code, taken apart. ``issuer`` is what it says of the server that made it."""

    issuer: str
    secret: str

    @classmethod
    def read(cls, text: str) -> EnrolmentCode:
        """Raises ``enrolment.invalid`` for what is no code."""
        named = _NAMING.fullmatch(text)
        if named is None:
            detail = f"a code begins with {DIGITS} hexadecimal digits and a dot; check it, or ask for a new one"
            raise FerretError("enrolment.invalid", detail)
        return cls(named["issuer"], named["secret"])

    @classmethod
    def of(cls, instance: str, secret: str) -> EnrolmentCode:
        """The code that the server ``instance`` makes of the secret."""
        return cls(instance[:DIGITS], secret)

    def names_another(self, instance: str) -> bool:
        """Whether it says that another server than ``instance`` made it."""
        return self.issuer != instance[:DIGITS]

    def __str__(self) -> str:
        return f"{self.issuer}.{self.secret}"
