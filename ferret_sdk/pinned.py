"""Trust in the one certificate that a server of this machine was started with."""

from __future__ import annotations

import ssl
from pathlib import Path

from ferret_core.protocol.errors import FerretError

END = "-----END CERTIFICATE-----"


def pinned(cert_file: Path) -> ssl.SSLContext:
    """Takes a server with exactly the first certificate in ``cert_file``, under whichever name it is asked.

    Those behind it in the file are its authorities', which sign others too: they are not trusted. Raises
    ``server.unreachable`` where the file is no certificate any more.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the certificate itself is known, not only who signed it
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=cert_file.read_text().partition(END)[0] + END)
    except (OSError, ValueError) as error:
        detail = f"the server's certificate {cert_file} cannot be read ({error}); restart ferret serve"
        raise FerretError("server.unreachable", detail) from error
    return context
