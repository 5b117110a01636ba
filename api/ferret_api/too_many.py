"""Refusing who asks too often, with the time to wait."""

from __future__ import annotations

import math

from ferret_core.protocol.errors import FerretError


class TooMany(FerretError):
    """``request.too_many``, and in how many whole seconds the next try is worth it."""

    def __init__(self, reason: str, seconds: float) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        super().__init__("request.too_many", f"{reason}; try again in {self.retry_after} s")
