"""TLS of the API. New connections use a certificate as soon as it is renewed on disk."""

from __future__ import annotations

import logging
import ssl

from ferret_core.protocol.errors import FerretError
from ferret_core.system.tls_certificate import Certificate

logger = logging.getLogger(__name__)

Stamp = tuple[tuple[int, int, int], ...]


class Tls:
    """TLS context of the listener; :meth:`renew` must be called periodically.

    A context in use is never changed: each handshake picks the newest one.
    """

    def __init__(self, certificate: Certificate) -> None:
        self._files = certificate.cert_file, certificate.key_file
        self._seen = self._stamp()
        self._newest = self.context = _context(certificate)
        self.context.sni_callback = self._pick

    def renew(self) -> None:
        """Loads the files if they have changed. If they are unusable, logs the reason and keeps the old certificate."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            certificate = Certificate.load(*self._files)
            self._newest = _context(certificate)
            logger.info("the certificate was renewed; it is valid until %s", certificate.ends.isoformat())
        except FerretError as error:
            logger.warning("the changed certificate cannot be used; the previous one stays in use: %s", error.detail)

    def _pick(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _stamp(self) -> Stamp | None:
        try:
            found = [path.stat() for path in self._files]
        except OSError:
            return None
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _context(certificate: Certificate) -> ssl.SSLContext:
    """Returns a context with Python's defaults for servers, which require TLS 1.2."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate.cert_file, certificate.key_file)
    except (OSError, ssl.SSLError) as error:  # changed since the check, or weaker than OpenSSL allows
        reason = f"cannot be used: {error}"
        raise FerretError.of_field("settings.invalid", "FERRET_TLS_CERT", str(certificate.cert_file), reason) from error
    return context
