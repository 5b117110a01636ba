"""The API's settings: those every service has, and how this process serves."""

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
from ferret_core.protocol.alerts import MAIL_ADDRESS
from ferret_core.protocol.limits import MAX_PART_BYTES
from ferret_core.protocol.playground import MOST_TOKENS
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
    """Read from the environment with the prefix ``FERRET_``."""

    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 for every interface")
    port: int = Field(default=8765, ge=0, le=65535, description="Port to listen on; 0 for any free one")
    listen_fd: int | None = Field(
        default=None, ge=3, description="Descriptor of a listening socket to take over, instead of host and port"
    )
    tls_cert: Annotated[Path | None, AfterValidator(_file)] = Field(
        default=None,
        description="Certificate with which the API speaks https, in PEM form, those of its authorities behind it",
    )
    tls_key: Annotated[Path | None, AfterValidator(_file)] = Field(
        default=None, description="The certificate's private key, which nobody else may read"
    )
    hsts_seconds: int = Field(
        default=366 * 24 * 3600,
        ge=0,
        description="Seconds for which browsers that came by https refuse plain http to the same name; 0: not told",
    )
    admin_token: Annotated[str | None, FROM_FILE] = Field(
        default=None,
        min_length=16,
        repr=False,
        description="The admin token; by default generated at the first start and kept in admin.token under home",
    )
    max_request_bytes: int = Field(default=1 << 20, ge=1024, description="Largest JSON body accepted, in bytes")
    max_upload_bytes: int = Field(
        default=64 << 30,
        ge=1024,
        description="Largest contribution accepted, in bytes; the disk of FERRET_STORAGE_URL must have room for it",
    )
    part_bytes: int = Field(
        default=8 << 20,
        ge=64 << 10,
        le=MAX_PART_BYTES,
        description="Contributions of more bytes are sent in parts of as many",
    )
    public_url: Annotated[str | None, AfterValidator(_origin)] = Field(
        default=None,
        description="Address under which participants and browsers reach the service, e.g. https://ferret.example.org",
    )
    allowed_hosts: str = Field(
        default="",
        description="Further names the service answers to, separated by commas; * for any. Addresses, localhost, "
        "this machine's name and that of FERRET_PUBLIC_URL always are",
    )
    trusted_proxies: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Addresses and networks of reverse proxies, separated by commas, whose X-Forwarded-For and "
        "X-Forwarded-Proto count; from everybody else these headers are ignored",
    )
    session_seconds: int = Field(
        default=7 * 24 * 3600, ge=60, le=366 * 24 * 3600, description="Seconds until a browser has to sign in again"
    )
    oidc_issuer: Annotated[str | None, AfterValidator(_issuer)] = Field(
        default=None,
        description="OpenID Connect provider with which people may sign in, by its issuer, e.g. "
        "https://login.example.org/realms/hospital",
    )
    oidc_client_id: str | None = Field(default=None, description="What the provider calls this service")
    oidc_client_secret: Annotated[str | None, FROM_FILE] = Field(
        default=None, repr=False, description="By which the provider knows this service; none for a public client"
    )
    oidc_scopes: str = Field(
        default="openid profile email",
        pattern=r"(^|\s)openid(\s|$)",
        description="What is asked of the provider: openid, and the scopes of the claims below",
    )
    oidc_name: str | None = Field(
        default=None, max_length=60, description="What the dashboard calls the provider; by default its host"
    )
    oidc_name_claim: str = Field(
        default="preferred_username",
        description="Claim that names a new account, e.g. email; it links no account with another",
    )
    oidc_role_claim: str = Field(
        default="groups", description="Claim that FERRET_OIDC_ROLES is about; dots lead into objects"
    )
    oidc_roles: Annotated[dict[str, Role], NoDecode, BeforeValidator(_json)] = Field(
        default={},
        description='Roles by value of that claim, as JSON, e.g. {"ferret-admins": "admin"}; the highest counts',
    )
    oidc_default_role: Role | None = Field(
        default=None, description="Role of whoever has none by that claim; without it they are not let in"
    )
    min_participants: int = Field(
        default=3,
        ge=1,
        description="Real participants that must have contributed to a round before its update and checkpoint can be "
        "downloaded; its experiment's participants always can",
    )
    alert_networks: Annotated[str, AfterValidator(_networks)] = Field(
        default="",
        description="Private networks, separated by commas, into which webhooks of alerts may lead, e.g. 10.0.0.0/8; "
        "public addresses always may",
    )
    alert_stalled_seconds: float = Field(
        default=600, ge=0, description="Seconds that an experiment stands still before an alert says so"
    )
    smtp_host: str | None = Field(default=None, description="Server that sends e-mail for alerts; without one none is")
    smtp_port: int = Field(default=587, ge=1, le=65535, description="Its port; usually 465 with tls")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="How the connection is encrypted: after a greeting, from the start, or not at all",
    )
    smtp_user: str | None = Field(default=None, description="User to sign in as, where the mail server asks for it")
    smtp_password: Annotated[str | None, FROM_FILE] = Field(
        default=None, repr=False, description="The user's password at the mail server"
    )
    smtp_from: str = Field(
        default="ferret@localhost", max_length=254, pattern=MAIL_ADDRESS, description="Sender of the e-mail"
    )
    expected_participants: int = Field(
        default=400,
        ge=1,
        description="Participants that there will be at a time, about: how often they ask and may ask follows from it",
    )
    max_connections: int = Field(
        default=4096,
        ge=1,
        description="Most connections of one API process at a time; fewer where the system allows too few open files. "
        "A quarter of them may be held questions for work, half of them event streams",
    )
    playground_tokens: int = Field(
        default=512, ge=1, le=MOST_TOKENS, description="Longest answer in the playground, in tokens"
    )

    @cached_property
    def sizing(self) -> Sizing:
        """What follows from the participants and connections that there may be."""
        return Sizing.derived(self.expected_participants, self.max_connections, file_descriptors.limit())

    @cached_property
    def certificate(self) -> Certificate | None:
        """What the API speaks https with; ``settings.invalid`` if it cannot."""
        return Certificate.given(self.tls_cert, self.tls_key)
