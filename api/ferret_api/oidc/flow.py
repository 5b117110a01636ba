"""Values that bind a sign-in to the browser that began it."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from ferret_core.protocol.digest import digest_bytes

SECONDS = 600
"""Maximum duration of a sign-in at the provider."""

_SECRET_BYTES = 32


class Flow(NamedTuple):
    """One sign-in. Its values are derived from the secret in the browser's cookie, so the service stores nothing."""

    secret: str

    @classmethod
    def begin(cls) -> Flow:
        return cls(secrets.token_urlsafe(_SECRET_BYTES))

    @property
    def state(self) -> str:
        """Value that the provider returns with the browser, which proves that the same browser began the sign-in."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Value in the ID token, which proves that the token was issued for this sign-in."""
        return self._derived("nonce")

    @property
    def code_verifier(self) -> str:
        """PKCE verifier (RFC 7636), without which a stolen code is useless."""
        return self._derived("code verifier")

    def is_state(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.state.encode())

    def _derived(self, purpose: str) -> str:
        return digest_bytes(f"{purpose} {self.secret}".encode())
