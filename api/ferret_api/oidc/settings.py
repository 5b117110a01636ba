"""What is set of the provider, taken together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role


class OidcSettings(NamedTuple):
    """As in ``ApiSettings``, without ``oidc_``."""

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
        """None where no provider is set; ``settings.invalid`` where a part is missing."""
        issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
        if issuer is None and client_id is None:
            return None
        if issuer is None:
            raise _missing("FERRET_OIDC_ISSUER", "the provider's address")
        if client_id is None:
            raise _missing("FERRET_OIDC_CLIENT_ID", "what the provider calls this service")
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
