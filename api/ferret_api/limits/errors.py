"""The rate-limit error, with the time to wait."""

from __future__ import annotations

import math
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError


class Policy(NamedTuple):
    """A limit of ``quota`` requests within ``window`` seconds."""

    name: str
    quota: int
    window: int


class RateLimitExceeded(FerretError):
    """The error ``request.too_many``, with the whole seconds until the next attempt."""

    def __init__(self, reason: str, seconds: float, policy: Policy | None = None) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        self.policy = policy
        super().__init__("request.too_many", f"{reason}; try again in {self.retry_after} s")

    @property
    def headers(self) -> dict[str, str]:
        """Headers ``Retry-After`` (RFC 9110, section 10.2.3) and policy (draft-ietf-httpapi-ratelimit-headers-10)."""
        found = {"Retry-After": str(self.retry_after)}
        if self.policy is not None:
            name, quota, window = self.policy
            found["RateLimit-Policy"] = f'"{name}";q={quota};w={window}'
            found["RateLimit"] = f'"{name}";r=0;t={self.retry_after}'
        return found
