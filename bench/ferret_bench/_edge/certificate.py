"""A certificate authority for one run, and the server's certificate from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trustme


class Certificate(NamedTuple):
    """PEM files: the server's chain and key, and the authority that clients must trust."""

    chain: Path
    key: Path
    authority: Path


def issue(folder: Path, hosts: Sequence[str]) -> Certificate:
    """Issues a certificate for the names and addresses ``hosts``. Only its owner can read the key."""
    authority = trustme.CA()
    issued = authority.issue_cert(*hosts)
    certificate = Certificate(folder / "server.crt", folder / "server.key", folder / "authority.crt")
    certificate.key.touch(mode=0o600)
    issued.private_key_pem.write_to_path(certificate.key)
    certificate.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(certificate.authority)
    return certificate
