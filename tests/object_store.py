"""A real S3 server for the tests, in a process of its own: moto's, whose objects are in memory.

``POST /ferret-test/age?bucket=…&key=…&seconds=…`` makes an object older, ``rot`` gives it other bytes, and ``remove``
takes it away: what S3 itself does not let anybody do, or only with traces.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs

import httpx

ACCOUNT = "123456789012"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "ferret",
    "AWS_SECRET_ACCESS_KEY": "a secret of the tests",
    "AWS_REGION": "us-east-1",
}
# A part of the tests is small; nothing outside of them is read.
ENVIRONMENT = {"S3_UPLOAD_PART_MIN_SIZE": "1024", "AWS_CONFIG_FILE": os.devnull, "AWS_EC2_METADATA_DISABLED": "true"}
OURS = "/ferret-test/"


@contextmanager
def started(**environment: str) -> Iterator[str]:
    """The address of an empty server, gone afterwards with all it held."""
    command = [sys.executable, "-m", __name__]
    given = {**os.environ, **ENVIRONMENT, **environment}
    process = subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def make_bucket(endpoint: str, name: str) -> None:
    """An empty one."""
    signed = "AWS4-HMAC-SHA256 Credential=ferret/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    httpx.put(f"{endpoint}/{name}", headers={"Authorization": signed}, trust_env=False, timeout=60).raise_for_status()


def act(endpoint: str, what: str, bucket: str, key: str, content: bytes = b"", **values: Any) -> None:
    """One of the module's own requests."""
    given = {"bucket": bucket, "key": key, **values}
    httpx.post(f"{endpoint}{OURS}{what}", params=given, content=content, trust_env=False, timeout=60).raise_for_status()


def application(store: Any) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """WSGI: moto's, and the requests of this module."""
    from moto.backends import get_backend

    def answer(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if wanted := environ.get("HTTP_CONTENT_MD5"):  # which S3 compares, and moto does not
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            environ["wsgi.input"] = BytesIO(body)
            if b64encode(hashlib.md5(body).digest()).decode() != wanted:
                return refuse(start, "400 Bad Request", "BadDigest")
        given = {name: values[0] for name, values in parse_qs(environ["QUERY_STRING"]).items()}
        if not environ["PATH_INFO"].startswith(OURS):
            name = environ["PATH_INFO"].split("/")[1]
            buckets = get_backend("s3")[ACCOUNT]["aws"].buckets
            if "uploadId" in given and given["uploadId"] not in buckets[name].multiparts:  # where moto has a KeyError
                return refuse(start, "404 Not Found", "NoSuchUpload")
            return store(environ, start)
        objects = get_backend("s3")[ACCOUNT]["aws"].buckets[given["bucket"]].keys
        match environ["PATH_INFO"].removeprefix(OURS):
            case "age":
                objects[given["key"]].last_modified -= timedelta(seconds=float(given["seconds"]))
            case "rot":
                objects[given["key"]].value = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            case _:
                del objects[given["key"]]
        start("204 No Content", [])
        return ()

    return answer


def refuse(start: Any, status: str, code: str) -> Iterable[bytes]:
    """As S3 does it."""
    start(status, [("Content-Type", "application/xml")])
    return (f"<Error><Code>{code}</Code><Message>{status}</Message></Error>".encode(),)


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, application(DomainDispatcherApplication(create_backend_app)), threaded=True)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
