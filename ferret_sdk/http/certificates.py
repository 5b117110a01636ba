"""Trusted certificate authorities, and the reason that a server's certificate is refused."""

from __future__ import annotations

import os
import ssl
from functools import cache
from pathlib import Path

import httpx

from ferret_core.protocol.errors import FerretError

# OpenSSL's X509_V_ERR_ numbers (x509_vfy.h).
NOT_YET_VALID = 9
EXPIRED = 10
UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
OTHER_NAME = frozenset({62, 64})
END_OF_CERTIFICATE = "-----END CERTIFICATE-----"
PLAIN_HTTP = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})


def context(ca: Path | None = None) -> ssl.SSLContext:
    """Creates a context that trusts only the authorities in the file ``ca``, if given.

    Otherwise it trusts the authorities of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR``, otherwise this machine's and the
    public ones. Raises ``request.invalid`` for a file without certificates.
    """
    named, folder = ca or os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    field = "ca" if ca else "SSL_CERT_FILE" if named else "SSL_CERT_DIR"
    try:
        if named or folder:
            return ssl.create_default_context(cafile=named, capath=None if ca else folder)
        return _usual()
    except OSError as error:  # includes ssl.SSLError
        message = f"cannot be read as certificates in PEM ({error.strerror or error}); name a file that begins with "
        message += "-----BEGIN CERTIFICATE-----"
        raise FerretError.of_field("request.invalid", field, str(named or folder), message) from error


@cache
def _usual() -> ssl.SSLContext:
    """Creates a context that trusts this machine's authorities and the public ones.

    Loading them takes about 20 ms, so it is done once.
    """
    usual = httpx.create_ssl_context(trust_env=False)
    usual.load_default_certs()
    return usual


def refused(url: str, error: BaseException) -> FerretError | None:
    """Returns the reason that TLS with the server at ``url`` failed, if ``error`` or one of its causes is a TLS error.

    This is ``certificate.invalid`` for a refused certificate, ``server.unexpected`` for a server without TLS.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return FerretError("certificate.invalid", _reason(url, cause))
    if cause is not None and cause.reason in PLAIN_HTTP:
        return FerretError("server.unexpected", f"{url} does not speak TLS: check the port, and whether it is http://…")
    return None


def _reason(url: str, error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message
    if error.verify_code in OTHER_NAME:
        return (
            f"the certificate of {url} is for another name ({said}): use the name that the certificate has, "
            "or ask who runs the server for a certificate with this one"
        )
    if error.verify_code == EXPIRED:
        return (
            f"the certificate of {url} has expired: who runs the server has to renew it; if it is new, check the clock "
            "of this machine"
        )
    if error.verify_code == NOT_YET_VALID:
        return f"the certificate of {url} is not valid yet: check the clock of this machine"
    if error.verify_code in UNKNOWN_AUTHORITY:
        return (
            f"the certificate of {url} comes from an authority that is not known here ({said}): if the server, or a "
            "proxy that reads the traffic, uses a private authority, give its certificate with --ca FILE (FERRET_CA)"
        )
    return f"the certificate of {url} is not valid: {said}"


def pinned(cert_file: Path) -> ssl.SSLContext:
    """Creates a context that trusts only the first certificate in ``cert_file``, for any host name.

    It is for a server on this machine. CA certificates after it in the file are ignored: they sign others too. Raises
    ``server.unreachable`` if the file is not a valid certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate itself is known, not only its issuer
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        first = cert_file.read_text().partition(END_OF_CERTIFICATE)[0] + END_OF_CERTIFICATE
        context.load_verify_locations(cadata=first)
    except (OSError, ValueError) as error:
        detail = f"the server's certificate {cert_file} cannot be read ({error}); restart ferret serve"
        raise FerretError("server.unreachable", detail) from error
    return context
