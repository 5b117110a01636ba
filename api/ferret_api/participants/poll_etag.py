"""Entity tag of responses to polls (RFC 9110, section 8.8.3), and the preference to wait (RFC 7240)."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

_TAG = re.compile(r'"([0-9]{1,18})/([0-9.]{1,100})"')
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?([0-9]{1,6})(?![0-9])", re.IGNORECASE)


class PollTag(NamedTuple):
    """A tag: ``mark`` determines the participant's next step, ``seq`` (the newest event) the progress of others."""

    seq: int
    mark: str

    @classmethod
    def read(cls, header: str) -> Self | None:
        """Returns the first tag of this format in ``If-None-Match``; None without any."""
        found = _TAG.search(header)
        return None if found is None else cls(int(found[1]), found[2])

    def __str__(self) -> str:
        """Returns a weak tag, since responses with the same tag may differ in their poll interval."""
        return f'W/"{self.seq}/{self.mark}"'


def wait_seconds(prefer: str) -> int:
    """Returns N of ``Prefer: wait=N``; 0 without it."""
    found = _WAIT.search(prefer)
    return 0 if found is None else int(found[1])
