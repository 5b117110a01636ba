"""Client of the OpenID Connect provider.

The first :class:`Provider` imports the libraries, which saves 4 MB of memory in a service without a provider.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_api.oidc import claims
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role

if TYPE_CHECKING:
    from joserfc.errors import JoseError


import secrets
from urllib.parse import urlsplit

from ferret_core.protocol.digest import digest_bytes


class OidcSettings(NamedTuple):
    """The settings ``oidc_…`` of ``ApiSettings``."""

    issuer: str
    client_id: str
    client_secret: str | None
    scopes: str
    name: str
    name_claim: str
    role_claim: str
    roles: Mapping[str, Role]
    default_role: Role | None

    @classmethod
    def of(cls, settings: ApiSettings) -> OidcSettings | None:
        """Returns None without a provider; raises ``settings.invalid`` if a setting is missing."""
        issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
        if issuer is None and client_id is None:
            return None
        if issuer is None:
            raise _missing("FERRET_OIDC_ISSUER", "the provider's issuer URL")
        if client_id is None:
            raise _missing("FERRET_OIDC_CLIENT_ID", "this service's client id at the provider")
        return cls(
            issuer=issuer,
            client_id=client_id,
            client_secret=settings.oidc_client_secret,
            scopes=settings.oidc_scopes,
            name=settings.oidc_name or urlsplit(issuer).netloc,
            name_claim=settings.oidc_name_claim,
            role_claim=settings.oidc_role_claim,
            roles=settings.oidc_roles,
            default_role=settings.oidc_default_role,
        )


def _missing(variable: str, meaning: str) -> FerretError:
    return FerretError("settings.invalid", f"{variable} is not set: give {meaning}, or unset all FERRET_OIDC_…")


SIGN_IN_SECONDS = 600
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


logger = logging.getLogger(__name__)
logging.getLogger("authlib").setLevel(logging.INFO)  # at lower levels it logs code verifiers

TIMEOUT_SECONDS = 10
KEPT_SECONDS = 3600
"""Lifetime of the cached metadata and keys. A key with a new id is fetched immediately."""
CLOCK_SECONDS = 60
"""Tolerated difference between the clocks of the provider and this server."""
_SIGNED_BY_KEY_PAIR = ("RS", "PS", "ES", "Ed")
_BASIC, _POST = "client_secret_basic", "client_secret_post"
_LONGEST_SUBJECT = 255  # OpenID Connect Core, section 2


class Person(NamedTuple):
    """A person who signed in at the provider. ``role`` is None if the claims give no role."""

    issuer: str
    subject: str
    name: str
    role: Role | None
    groups: list[str]


class Provider:
    """Client of the provider, based on ``authlib``. Raises failures and refusals as ``oidc.…`` errors."""

    @classmethod
    def of(cls, settings: ApiSettings) -> Provider | None:
        """Returns the configured provider, or None; raises ``settings.invalid`` if a setting is missing."""
        found = OidcSettings.of(settings)
        return cls(found) if found else None

    def __init__(self, settings: OidcSettings) -> None:
        self.settings = settings
        self._client = self._new_client()
        self._client_since = time.monotonic()

    async def authorization_url(self, flow: Flow, redirect_uri: str) -> str:
        """Returns the URL at which the browser signs in."""
        with self._asking():
            client = await self._discovered()
            made = await client.create_authorization_url(
                redirect_uri, state=flow.state, nonce=flow.nonce, code_verifier=flow.code_verifier
            )
        return made["url"]

    async def person(self, flow: Flow, redirect_uri: str, code: str) -> Person:
        """Exchanges the code from the browser for the person's claims."""
        wanted = self.settings.name_claim, self.settings.role_claim
        with self._asking():
            client = await self._discovered()
            token = await client.fetch_access_token(redirect_uri, code=code, code_verifier=flow.code_verifier)
            said = await self._verified(client, token, flow)
            if claims.lacking(said, *wanted) and "userinfo_endpoint" in client.server_metadata:
                said = await _completed(client, said, token)
        return self._person(said)

    def _new_client(self) -> Any:
        from authlib.integrations.starlette_client import OAuth

        return OAuth().register(
            "provider",
            client_id=self.settings.client_id,
            client_secret=self.settings.client_secret,
            server_metadata_url=f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": self.settings.scopes,
                "code_challenge_method": "S256",
                "timeout": TIMEOUT_SECONDS,
                "verify": ssl.create_default_context(),
            },
        )

    async def _discovered(self) -> Any:
        """Returns a client with the provider's metadata (OpenID Connect Discovery 1.0) and keys, cached for an hour."""
        if time.monotonic() - self._client_since > KEPT_SECONDS:
            self._client, self._client_since = self._new_client(), time.monotonic()
        client = self._client
        metadata = await client.load_server_metadata()
        issuer = metadata.get("issuer")
        if not isinstance(issuer, str) or issuer.rstrip("/") != self.settings.issuer.rstrip("/"):
            raise ValueError(f"it calls itself {issuer!r}: set FERRET_OIDC_ISSUER to that")
        offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        by_key_pair = [name for name in offered if name.startswith(_SIGNED_BY_KEY_PAIR)]
        metadata["id_token_signing_alg_values_supported"] = by_key_pair
        methods = metadata.get("token_endpoint_auth_methods_supported") or [_BASIC]
        if self.settings.client_secret and _BASIC not in methods:
            client.client_kwargs["token_endpoint_auth_method"] = _POST
        return client

    async def _verified(self, client: Any, token: Mapping[str, Any], flow: Flow) -> Mapping[str, Any]:
        """Validates the ID token and returns its claims (OpenID Connect Core, section 3.1.3.7)."""
        from joserfc.errors import JoseError

        expected = {
            "iss": {"essential": True, "value": client.server_metadata["issuer"]},
            "aud": {"essential": True, "value": self.settings.client_id},
        }
        try:
            said = await client.parse_id_token(token, flow.nonce, expected, leeway=CLOCK_SECONDS)
        except JoseError as error:
            raise _not_valid(error) from error
        if said is None:
            raise FerretError("oidc.token_invalid", "there is none: ask who runs the provider")
        if not 0 < len(said["sub"]) <= _LONGEST_SUBJECT:
            raise FerretError("oidc.token_invalid", f"the subject has {len(said['sub'])} characters, not 1 to 255")
        return said

    def _person(self, said: Mapping[str, Any]) -> Person:
        mine = self.settings
        role = claims.role(said, mine.role_claim, mine.roles, mine.default_role)
        name, groups = claims.account_name(said, mine.name_claim), claims.values(said, mine.role_claim)
        return Person(said["iss"], said["sub"], name, role, groups)

    @contextmanager
    def _asking(self) -> Generator[None]:
        import httpx2
        from authlib.integrations.starlette_client import OAuthError
        from joserfc.errors import JoseError

        issuer = self.settings.issuer
        try:
            yield
        except OAuthError as error:
            raise refused(error.error, error.description) from error
        except httpx2.HTTPError as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            detail = f"{issuer} does not answer ({said}); try again, and see that this server reaches it"
            raise FerretError("oidc.unreachable", detail) from error
        except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, JoseError) as error:
            logger.warning("%s: %r", issuer, error)
            detail = f"{issuer} does not answer as OpenID Connect says: {error}"
            raise FerretError("oidc.unexpected", detail) from error


async def _completed(client: Any, said: Mapping[str, Any], token: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the claims and the userinfo endpoint's additional claims. The ID token takes precedence."""
    more = await client.userinfo(token=token)
    if more.get("sub") != said["sub"]:
        raise FerretError("oidc.token_invalid", "the userinfo endpoint names another subject")
    return {**more, **said}


def refused(error: str | None, description: str | None) -> FerretError:
    """Returns the error for a refusal by the provider (RFC 6749, sections 4.1.2.1 and 5.2)."""
    said = ": ".join(part for part in (error, description) if part)
    return FerretError("oidc.refused", f"the provider says {said or 'no'}; sign in again, or ask who runs it")


def _not_valid(error: JoseError) -> FerretError:
    from joserfc.errors import ExpiredTokenError, InvalidClaimError

    late = isinstance(error, ExpiredTokenError)
    if late or (isinstance(error, InvalidClaimError) and error.claim in {"iat", "nbf"}):
        when = "had expired when it came" if late else "is from the future"
        detail = f"the ID token {when}: the clock of this server or of the provider is wrong; set both by NTP"
        return FerretError("oidc.clock_skew", detail)
    return FerretError("oidc.token_invalid", f"it was not taken ({error}); ask who runs this server to look at it")
