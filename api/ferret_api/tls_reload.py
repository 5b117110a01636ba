"""The API's TLS: a certificate that is renewed on disk is shown to every connection that is made from then on."""

from __future__ import annotations

import logging
import ssl

from ferret_core.protocol.errors import FerretError
from ferret_core.system.tls_certificate import Certificate

logger = logging.getLogger(__name__)

Stamp = tuple[tuple[int, int, int], ...]


class Tls:
    """``context`` is what the server listens with; call :meth:`renew` now and then.

    A context that connections use is never changed: each handshake picks the newest.
    """

    def __init__(self, certificate: Certificate) -> None:
        self._files = certificate.cert_file, certificate.key_file
        self._seen = self._stamp()
        self._newest = self.context = _context(certificate)
        self.context.sni_callback = self._pick

    def renew(self) -> None:
        """Takes the files if they have changed and are good; else the log says why, and the old ones are kept."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            certificate = Certificate.load(*self._files)
            self._newest = _context(certificate)
            logger.info("the certificate was renewed; it is valid until %s", certificate.ends.isoformat())
        except FerretError as error:
            logger.warning("the certificate has changed and cannot be used; the one before is: %s", error.detail)

    def _pick(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._newest

    def _stamp(self) -> Stamp | None:
        """What changes whenever one of the files does; None while one is missing."""
        try:
            found = [path.stat() for path in self._files]
        except OSError:
            return None
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in found)


def _context(certificate: Certificate) -> ssl.SSLContext:
    """Of Python's choice for servers: TLS 1.2 at least."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate.cert_file, certificate.key_file)
    except (OSError, ssl.SSLError) as error:  # changed since it was looked at, or weaker than OpenSSL allows
        reason = f"cannot be used: {error}"
        raise FerretError.of_field("settings.invalid", "FERRET_TLS_CERT", str(certificate.cert_file), reason) from error
    return context
