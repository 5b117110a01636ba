"""A site that sends the upload in its spool, in a separate process: ``python -m ferret_bench._upload_site``.

Its arguments are the server's address, its token and its folder. When the contribution has arrived it prints the
seconds and the bytes of bodies, as JSON, and stays alive for inspection until it is killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter

from ferret_sdk.http.transport import Transport
from ferret_sdk.participant.spool import Spool
from ferret_sdk.participant.uploader import Uploader


def main(url: str, token: str, folder: str) -> None:
    spool, transport = Spool(Path(folder)), Transport(url, token)
    upload = spool.waiting()
    assert upload is not None
    begin = perf_counter()
    Uploader(transport, spool, lambda upload: None).send(upload)
    print(json.dumps({"seconds": perf_counter() - begin, "sent": transport.traffic.up}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
