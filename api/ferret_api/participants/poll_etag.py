"""The entity tag of an answer to a participant (RFC 9110, section 8.8.3), and the preference to wait (RFC 7240)."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

_TAG = re.compile(r'"([0-9]{1,18})/([0-9.]{1,100})"')
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?([0-9]{1,6})(?![0-9])", re.IGNORECASE)


class Tag(NamedTuple):
    """``mark`` says what the participant is to do, ``seq`` (the experiment's newest event) how far others are."""

    seq: int
    mark: str

    @classmethod
    def read(cls, header: str) -> Self | None:
        """The first tag of ours in ``If-None-Match``."""
        found = _TAG.search(header)
        return None if found is None else cls(int(found[1]), found[2])

    def __str__(self) -> str:
        """Weak: two answers with one tag may differ in their pauses."""
        return f'W/"{self.seq}/{self.mark}"'


def wait_seconds(prefer: str) -> int:
    """What ``Prefer: wait=N`` asks for; 0 without it."""
    found = _WAIT.search(prefer)
    return 0 if found is None else int(found[1])
