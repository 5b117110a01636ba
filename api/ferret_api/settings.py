"""Settings of the API process."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import NoDecode

from ferret_api.client_network import networks
from ferret_api.sizing import Sizing
from ferret_core.protocol.limits import MAX_PART_BYTES
from ferret_core.protocol.playground import MOST_TOKENS
from ferret_core.protocol.resources.alerts import MAIL_ADDRESS
from ferret_core.protocol.roles import Role
from ferret_core.system.tls_certificate import Certificate
from ferret_runtime import file_descriptors
from ferret_runtime.settings import FROM_FILE, ServiceSettings


def _origin(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an address such as https://ferret.example.org")
    return url.rstrip("/")


def _networks(listed: str) -> str:
    try:
        networks(listed)
    except ValueError as error:
        raise ValueError(f"{error}: give addresses and networks such as 10.0.0.5,10.1.0.0/24") from error
    return listed


def _issuer(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if not parts.hostname or parts.query or parts.fragment or not (parts.scheme == "https" or local):
        raise ValueError("must be the provider's https address, as its discovery document names it")
    return url


def _json(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from error


def _file(path: Path | None) -> Path | None:
    return path and path.expanduser().absolute()


class ApiSettings(ServiceSettings):
    """Settings read from environment variables with the prefix ``FERRET_``."""

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 for all interfaces")
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 for any free one")
    listen_fd: int | None = Field(
        default=None, ge=3, description="File descriptor of a listening socket to use instead of host and port"
    )
    tls_cert: Annotated[Path | None, AfterValidator(_file)] = Field(
        default=None, description="PEM file with the certificate chain for https, server certificate first"
    )
    tls_key: Annotated[Path | None, AfterValidator(_file)] = Field(
        default=None, description="PEM file with the certificate's private key; only its owner may read it"
    )
    hsts_seconds: int = Field(
        default=366 * 24 * 3600,
        ge=0,
        description="Seconds during which browsers that used https refuse plain http to the host name; 0 disables this",
    )
    admin_token: Annotated[str | None, FROM_FILE] = Field(
        default=None,
        min_length=16,
        repr=False,
        description="The admin token; by default generated at the first start and stored in admin.token under home",
    )
    max_request_bytes: int = Field(
        default=1 << 20,
        ge=1024,
        description="Maximum size of a specification, in bytes; most other JSON bodies are limited to 8 kB",
    )
    max_upload_bytes: int = Field(
        default=64 << 30,
        ge=1024,
        description="Maximum size of a contribution, in bytes; the disk of FERRET_STORAGE_URL must have room for it",
    )
    part_bytes: int = Field(
        default=8 << 20,
        ge=64 << 10,
        le=MAX_PART_BYTES,
        description="Size of an upload part, in bytes; larger contributions are sent in several parts",
    )
    public_url: Annotated[str | None, AfterValidator(_origin)] = Field(
        default=None, description="URL of the service for participants and browsers, e.g. https://ferret.example.org"
    )
    allowed_hosts: str = Field(
        default="",
        description="Additional host names that the service accepts, separated by commas; * for any. IP addresses, "
        "localhost, this machine's name and the host of FERRET_PUBLIC_URL are always accepted",
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Addresses and networks of trusted reverse proxies, separated by commas. Only their "
        "X-Forwarded-For and X-Forwarded-Proto headers are used",
    )
    session_seconds: int = Field(
        default=7 * 24 * 3600, ge=60, le=366 * 24 * 3600, description="Seconds until a browser must sign in again"
    )
    oidc_issuer: Annotated[str | None, AfterValidator(_issuer)] = Field(
        default=None,
        description="Issuer URL of the OpenID Connect provider for sign-in, e.g. "
        "https://login.example.org/realms/hospital",
    )
    oidc_client_id: str | None = Field(default=None, description="Client id of this service at the provider")
    oidc_client_secret: Annotated[str | None, FROM_FILE] = Field(
        default=None, repr=False, description="Client secret of this service at the provider; unset for a public client"
    )
    oidc_scopes: str = Field(
        default="openid profile email",
        pattern=r"(^|\s)openid(\s|$)",
        description="Scopes to request from the provider: openid, and the scopes of the claims below",
    )
    oidc_name: str | None = Field(
        default=None, max_length=60, description="Display name of the provider in the dashboard; by default its host"
    )
    oidc_name_claim: str = Field(
        default="preferred_username",
        description="Claim with the name of a new account, e.g. email; it never links existing accounts",
    )
    oidc_role_claim: str = Field(
        default="groups", description="Claim that FERRET_OIDC_ROLES maps to roles; dots select members of objects"
    )
    oidc_roles: Annotated[dict[str, Role], NoDecode, BeforeValidator(_json)] = Field(
        default={},
        description='Roles by value of that claim, as JSON, e.g. {"ferret-admins": "admin"}; the highest role applies',
    )
    oidc_default_role: Role | None = Field(
        default=None, description="Role for users without a role claim; if unset they are refused"
    )
    min_participants: int = Field(
        default=3,
        ge=1,
        description="Minimum number of real participants that contributed to a round for users to download its "
        "update and checkpoint; the experiment's participants always can",
    )
    alert_networks: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Private networks that alert webhooks may reach, separated by commas, e.g. 10.0.0.0/8; public "
        "addresses are always allowed",
    )
    alert_stalled_seconds: float = Field(
        default=600, ge=0, description="Seconds without progress after which an experiment raises an alert"
    )
    smtp_host: str | None = Field(
        default=None, description="SMTP server for alert e-mails; if unset, e-mail is disabled"
    )
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Port of the SMTP server; usually 465 with tls")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        default="starttls", description="Encryption of the SMTP connection: STARTTLS, TLS from the start, or none"
    )
    smtp_user: str | None = Field(default=None, description="User name at the SMTP server, if it requires one")
    smtp_password: Annotated[str | None, FROM_FILE] = Field(
        default=None, repr=False, description="Password at the SMTP server"
    )
    smtp_from: str = Field(
        default="ferret@localhost", max_length=254, pattern=MAIL_ADDRESS, description="Sender address of alert e-mails"
    )
    expected_participants: int = Field(
        default=400,
        ge=1,
        description="Approximate number of simultaneous participants, which sets poll intervals and rate limits",
    )
    max_connections: int = Field(
        default=4096,
        ge=1,
        description="Maximum connections of one API process; fewer if the system allows too few open files. A quarter "
        "of them may be held polls for work, half of them event streams",
    )
    playground_tokens: int = Field(
        default=512, ge=1, le=MOST_TOKENS, description="Maximum length of an answer in the playground, in tokens"
    )

    @cached_property
    def sizing(self) -> Sizing:
        """Limits derived from the expected participants and the maximum connections."""
        return Sizing.derived(self.expected_participants, self.max_connections, file_descriptors.limit())

    @cached_property
    def certificate(self) -> Certificate | None:
        """Certificate for https, or None; raises ``settings.invalid`` if it is unusable."""
        return Certificate.given(self.tls_cert, self.tls_key)
