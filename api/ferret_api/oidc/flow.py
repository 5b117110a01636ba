"""What binds a sign-in to the browser that began it."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from ferret_core.protocol.digest import digest_bytes

SECONDS = 600
"""Within which somebody has to sign in at the provider."""

_SECRET_BYTES = 32


class Flow(NamedTuple):
    """One sign-in. All that binds it follows from the secret in the browser's cookie, so the service keeps nothing."""

    secret: str

    @classmethod
    def begin(cls) -> Flow:
        return cls(secrets.token_urlsafe(_SECRET_BYTES))

    @property
    def state(self) -> str:
        """Comes back with the browser: shows that the browser that comes back is the one that was sent."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Stands in the ID token: shows that it was made for this sign-in."""
        return self._derived("nonce")

    @property
    def code_verifier(self) -> str:
        """PKCE (RFC 7636): a code that was stolen on its way is worth nothing without it."""
        return self._derived("code verifier")

    def is_state(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.state.encode())

    def _derived(self, purpose: str) -> str:
        return digest_bytes(f"{purpose} {self.secret}".encode())
