"""A server's TLS certificate and its key, checked before anything is started with them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtensionOID

from ferret_core.protocol.errors import FerretError

CERT, KEY = "FERRET_TLS_CERT", "FERRET_TLS_KEY"
WORLD, GROUP = 0o007, 0o070


class Certificate(NamedTuple):
    """A valid certificate and the file of its key. ``names`` are lower-case; ``*.`` occurs only at the start."""

    cert_file: Path
    key_file: Path
    names: tuple[str, ...]
    addresses: tuple[IPv4Address | IPv6Address, ...]
    ends: datetime

    @classmethod
    def load(cls, cert_file: Path, key_file: Path) -> Certificate:
        """Loads the first certificate in ``cert_file`` (PEM), which may be followed by its authorities' certificates.

        Raises ``settings.invalid`` if a file cannot be read, others can read the key, the two do not match, or the
        certificate has no name or is not valid now.
        """
        found, key = _certificate(cert_file), _key(key_file)
        if found.public_key() != key.public_key():
            reason = f"does not belong to the certificate in {cert_file}: give the key that it was made with"
            raise _invalid(KEY, key_file, reason)
        _require_valid_now(found, cert_file)
        names, addresses = _named(found)
        if not names and not addresses:
            reason = "names no host and no address (subjectAltName), so no client can trust it: get one that does"
            raise _invalid(CERT, cert_file, reason)
        return cls(cert_file, key_file, names, addresses, found.not_valid_after_utc)

    @classmethod
    def given(cls, cert_file: Path | None, key_file: Path | None) -> Certificate | None:
        """Calls :meth:`load` on the settings; returns None if both are unset, raises ``settings.invalid`` if one is."""
        if cert_file and key_file:
            return cls.load(cert_file.expanduser().absolute(), key_file.expanduser().absolute())
        if cert_file:
            raise _invalid(KEY, None, f"is needed with {CERT}: give --tls-key the file of the certificate's key")
        if key_file:
            raise _invalid(CERT, None, f"is needed with {KEY}: give --tls-cert the file of the certificate")
        return None

    def covers(self, host: str) -> bool:
        """True if clients accept this certificate for ``host``, a name or an address (RFC 9525, section 6)."""
        try:
            return ip_address(host) in self.addresses
        except ValueError:
            name = host.rstrip(".").lower()
            return name in self.names or f"*.{name.partition('.')[2]}" in self.names

    def require(self, hosts: Iterable[str]) -> None:
        """Raises ``settings.invalid`` unless it covers one of ``hosts``, the names that clients use for the server."""
        asked = [*hosts]
        if not any(map(self.covers, asked)):
            reason = (
                f"is for {self.described}, and clients reach this server as {' or '.join(asked)}: give --host one of "
                "its names, set FERRET_PUBLIC_URL to the https address that clients use, or get another certificate"
            )
            raise _invalid(CERT, self.cert_file, reason)

    @property
    def described(self) -> str:
        """Description of the names and addresses that it covers."""
        return ", ".join([*self.names, *map(str, self.addresses)])

    @property
    def host(self) -> str | None:
        """Its first name or address for a single host; None if all are patterns."""
        return next((name for name in (*self.names, *map(str, self.addresses)) if "*" not in name), None)


def valid_until(cert_file: Path) -> datetime:
    """Returns the expiry time of the first certificate in the file."""
    return _certificate(cert_file).not_valid_after_utc


def _certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())[0]
    except OSError as error:
        raise _unreadable(CERT, path, error) from error
    except (ValueError, IndexError) as error:
        reason = "is not a certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----"
        raise _invalid(CERT, path, reason) from error


def _key(path: Path) -> PrivateKeyTypes:
    try:
        _require_private(path, path.stat())
        return load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise _unreadable(KEY, path, error) from error
    except TypeError as error:  # needs a password
        reason = f"is encrypted, and its password cannot be entered: openssl pkey -in {path.name} -out …"
        raise _invalid(KEY, path, reason) from error
    except ValueError as error:
        reason = "is not a private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----"
        raise _invalid(KEY, path, reason) from error


def _require_private(path: Path, found: os.stat_result) -> None:
    """Requires that only its owner can read it, or a group if root owns it, as distributions keep keys."""
    closed = WORLD if found.st_uid == 0 else WORLD | GROUP
    if os.name == "posix" and found.st_mode & closed:
        mode = stat.S_IMODE(found.st_mode)
        raise _invalid(KEY, path, f"can be read by other users (mode {mode:04o}): chmod 600 {path}")


def _require_valid_now(found: x509.Certificate, path: Path) -> None:
    now = datetime.now(UTC)
    if now > found.not_valid_after_utc:
        raise _invalid(CERT, path, f"expired on {found.not_valid_after_utc:%Y-%m-%d %H:%M} UTC: renew it")
    if now < found.not_valid_before_utc:
        begins = f"is valid from {found.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on"
        raise _invalid(CERT, path, f"{begins}, and here it is {now:%Y-%m-%d %H:%M} UTC: set this machine's clock")


def _named(found: x509.Certificate) -> tuple[tuple[str, ...], tuple[IPv4Address | IPv6Address, ...]]:
    try:
        said = found.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        return (), ()
    assert isinstance(said, x509.SubjectAlternativeName)
    names = tuple(name.lower() for name in said.get_values_for_type(x509.DNSName))
    addresses = said.get_values_for_type(x509.IPAddress)
    return names, tuple(each for each in addresses if isinstance(each, IPv4Address | IPv6Address))


def _unreadable(setting: str, path: Path, error: OSError) -> FerretError:
    return _invalid(setting, path, f"cannot be read: {error.strerror or error}")


def _invalid(setting: str, path: Path | None, reason: str) -> FerretError:
    return FerretError.of_field("settings.invalid", setting, str(path) if path else "", reason)
