"""The server's folder, broker, database and port."""

from __future__ import annotations

import shutil
import socket
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from ferret_cli.doctor.software import Check
from ferret_cli.stack import broker, ports
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.system.tls_certificate import valid_until
from ferret_db import schema_version
from ferret_runtime.broker import address
from ferret_runtime.settings import ServiceSettings
from ferret_sdk.http.certificates import pinned
from ferret_sdk.service.server_address import TOKEN_FILE, Address, running_server

BUCKET = 'see docs/operators/storage.md, "A bucket instead of a disk", for what the service needs'
NEEDED_BYTES = 2 * 10**9
RENEWAL_DAYS = 14
RENEW = "renew the certificate in its file; the server loads it automatically"


def checks(settings: ServiceSettings, port: int) -> list[Check]:
    """Checks all requirements of ``ferret serve`` on ``port`` except the packages."""
    found = [broker_program(settings), database(settings), disk(settings.home), token(settings.home)]
    buckets = [bucket(settings)] if urlsplit(settings.storage_url).scheme == "s3" else []
    return [*found, *buckets, server(settings.home, port)]


def broker_program(settings: ServiceSettings) -> Check:
    if broker.is_configured():
        return _running_broker(settings.broker_url)
    program = broker.find_program()
    if program is None:
        return Check("broker", False, "neither Redis nor Valkey found", broker.INSTALL)
    return Check("broker", True, f"ferret serve will start {program}")


def _running_broker(url: str) -> Check:
    host, port = address.place(url)
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        fix = "start it, or unset FERRET_BROKER_URL to have ferret serve start one"
        said = f"{host}:{port} (FERRET_BROKER_URL) does not answer: {error.strerror or error}"
        return Check("broker", False, said, fix)
    return Check("broker", True, f"{host}:{port} answers")


def database(settings: ServiceSettings) -> Check:
    file = urlsplit(settings.database_url).path.removeprefix("/")
    if settings.database_url.startswith("sqlite") and not Path(file).exists():
        return Check("database", True, f"ferret serve will create {file}")
    try:
        schema_version.check(settings.database_url)
    except FerretError as error:
        return Check("database", False, error.detail, "ferret migrate")
    return Check("database", True, f"at revision {schema_version.HEAD}")


def disk(home: Path) -> Check:
    existing = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    ok = free >= NEEDED_BYTES
    fix = None if ok else f"make room for {size(NEEDED_BYTES)}, or choose another folder: export FERRET_HOME=…"
    return Check("disk", ok, f"{size(free)} free in {existing}", fix)


def bucket(settings: ServiceSettings) -> Check:
    """Checks that the bucket supports every operation of the service."""
    storage = settings.open_storage()
    try:
        storage.rehearse()
    except FerretError as error:
        return Check("storage", False, error.detail, BUCKET)
    return Check("storage", True, f"{storage} can be listed, written, read and deleted from")


def token(home: Path) -> Check:
    path = home / TOKEN_FILE
    if not path.exists():
        return Check("admin token", True, f"ferret serve will create {path}")
    mode = path.stat().st_mode & 0o777
    ok = mode & 0o077 == 0
    return Check("admin token", ok, f"{path} has mode {mode:04o}", None if ok else f"chmod 600 {path}")


def server(home: Path, port: int) -> Check:
    """Checks that the server of this folder runs on the port, or that the port is free."""
    own = running_server(home)
    if own is not None and not ports.is_free(urlsplit(own.url).hostname or "127.0.0.1", urlsplit(own.url).port or port):
        return _running(own)
    if ports.is_free("127.0.0.1", port):
        return Check("server", True, f"none runs from {home}; port {port} is free")
    other = f"ferret serve --port {ports.free_port()}"
    if is_ferret(f"http://127.0.0.1:{port}"):
        fix = f"export FERRET_HOME=the folder of that one, or start another: {other}"
        return Check("server", None, f"a Ferret runs on port {port}, from another folder than {home}", fix)
    return Check("server", False, f"port {port} is taken by another program", other)


def _running(own: Address) -> Check:
    if own.certificate is None:
        return Check("server", True, f"running at {own.url}")
    try:
        httpx.get(f"{own.url}/healthz", timeout=3, trust_env=False, verify=pinned(own.certificate))
        days = (valid_until(own.certificate) - datetime.now(UTC)).days
    except (httpx.HTTPError, FerretError) as error:
        return Check("server", False, f"{own.url} does not answer with {own.certificate}: {error}", RENEW)
    detail = f"running at {own.url}; its certificate is valid for {days} more days"
    return Check("server", True if days >= RENEWAL_DAYS else None, detail, RENEW if days < RENEWAL_DAYS else None)


def is_ferret(url: str) -> bool:
    """Returns True if a Ferret answers there: its refusal is recognisable."""
    try:
        return "urn:ferret:problem:" in httpx.get(f"{url}/api/v1/info", timeout=3, trust_env=False).text
    except httpx.HTTPError:
        return False
