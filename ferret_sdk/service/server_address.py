"""Selection of server and token: arguments, otherwise the environment, otherwise the server of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http.transport import is_loopback

DEFAULT_URL = "http://127.0.0.1:8765"
SERVER_FILE = "server.json"
USUAL_PORTS = {"http": 80, "https": 443}
TOKEN_FILE = "admin.token"  # noqa: S105 # nosec B105


class ClientSettings(BaseSettings):
    """``FERRET_URL``, ``FERRET_TOKEN`` or ``FERRET_TOKEN_FILE``, ``FERRET_HOME``, ``FERRET_INSECURE_HTTP`` and
    ``FERRET_CA``."""

    model_config = SettingsConfigDict(env_prefix="FERRET_", env_ignore_empty=True, extra="ignore")

    url: str | None = None
    token: SecretStr | None = None
    token_file: Path | None = None
    home: Path = Path("~/.ferret")
    insecure_http: bool = False
    ca: Path | None = None


class Address(NamedTuple):
    """A server's base URL and token, if known; ``certificate`` is the file of this machine's server's certificate."""

    url: str
    token: str | None
    certificate: Path | None = None


def resolve(url: str | None = None, token: str | None = None) -> Address:
    """Completes the caller's values. The address that ``ferret serve`` prints is a valid ``url``.

    The token in this machine's ``FERRET_HOME`` is sent only to a server on this machine.
    """
    settings = ClientSettings()
    home = settings.home.expanduser()
    own = running_server(home)
    base, own_token, _ = split(url or settings.url or (own.url if own else DEFAULT_URL))
    is_own = own is not None and base == own.url
    token = token or own_token or _given_token(settings) or _local_token(home, base, is_own)
    return Address(base, token, own.certificate if own and is_own else None)


def split(url: str) -> Address:
    """Returns the base URL and the token in its fragment, if any (``http://127.0.0.1:8765/#token=…``).

    The base URL has one spelling: the host in lower case, and no port where it is the usual one.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise FerretError.of_field("request.invalid", "url", url, "is not an address such as http://127.0.0.1:8765")
    parts = urlsplit(url)
    tokens = parse_qs(parts.fragment).get("token")
    return Address(f"{parts.scheme}://{_netloc(parts)}{parts.path.rstrip('/')}", tokens[0] if tokens else None)


def _netloc(parts: SplitResult) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port not in {None, USUAL_PORTS[parts.scheme]} else ""
    return f"{user}{at}{host}{port}"


def _given_token(settings: ClientSettings) -> str | None:
    if settings.token:
        return settings.token.get_secret_value()
    if settings.token_file is None:
        return None
    try:
        return settings.token_file.expanduser().read_text().strip()
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); write the token to this file or unset the variable"
        raise FerretError.of_field("auth.missing", "FERRET_TOKEN_FILE", str(settings.token_file), reason) from error


def running_server(home: Path) -> Address | None:
    """Returns the server that runs in this home, as written by ``ferret serve``, without its token."""
    try:
        said = json.loads((home / SERVER_FILE).read_text())
        return Address(split(str(said["url"])).url, None, Path(said["certificate"]) if "certificate" in said else None)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _local_token(home: Path, url: str, is_own: bool) -> str | None:
    path = home / TOKEN_FILE
    return path.read_text().strip() if (is_own or is_loopback(url)) and path.is_file() else None
