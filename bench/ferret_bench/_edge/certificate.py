"""A certificate authority for one run, and a certificate of it for the server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import trustme


class Certificate(NamedTuple):
    """PEM files: the server's chain and key, and the authority that clients have to trust."""

    chain: Path
    key: Path
    authority: Path


def issue(folder: Path, hosts: Sequence[str]) -> Certificate:
    """For the names and addresses ``hosts``; the key is its owner's alone."""
    authority = trustme.CA()
    issued = authority.issue_cert(*hosts)
    certificate = Certificate(folder / "server.crt", folder / "server.key", folder / "authority.crt")
    certificate.key.touch(mode=0o600)
    issued.private_key_pem.write_to_path(certificate.key)
    certificate.chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    authority.cert_pem.write_to_path(certificate.authority)
    return certificate
