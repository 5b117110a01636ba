"""Settings of the OpenID Connect provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role


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
