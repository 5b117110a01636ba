"""The one place that speaks HTTP."""

from __future__ import annotations

import json
import weakref
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx

from ferret_core.protocol.errors import FerretError
from ferret_sdk.problems import error_of
from ferret_sdk.retry import ATTEMPTS, Retry, Transient, retry_after

PREFIX = "/api/v1"
REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
RETRIED = frozenset({429, 502, 503, 504})
TIMEOUT = httpx.Timeout(60.0, connect=5.0)


@dataclass(frozen=True)
class Answer:
    """A complete answer."""

    url: str
    body: bytes

    def json(self) -> Any:
        """The body's JSON value; ``server.unexpected`` if it is none."""
        try:
            return json.loads(self.body)
        except ValueError as error:
            detail = f"{self.url} answered with something that is not JSON: is this the address of a Ferret server?"
            raise FerretError("server.unexpected", detail) from error


@dataclass(frozen=True)
class Stream:
    """An answer whose body arrives in ``chunks``."""

    status: int
    chunks: Iterator[bytes]


class Transport:
    """Requests to one server, by paths below ``/api/v1``; safe to use from several threads.

    Retry policy: a request is repeated only if repeating it cannot do harm, which holds for GET, PUT and DELETE,
    for a POST with an ``Idempotency-Key`` and for those marked ``repeatable``. It is repeated when the connection
    fails, breaks or times out, and on 429, 502, 503 and 504; :class:`ferret_sdk.retry.Retry` says how often and when.
    Everything else is final and raised as the :class:`FerretError` the server meant; a server that cannot be
    reached is ``server.unreachable``.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A proxy for the outside world must not stand between a laptop and its own server.
        self._client = httpx.Client(headers=headers, timeout=TIMEOUT, trust_env=not is_loopback(self.url))
        # The connections end with the last Service, Run or Participant that uses them.
        weakref.finalize(self, self._client.close)

    def get(self, path: str, attempts: int = ATTEMPTS, **query: Any) -> Any:
        """The JSON at ``path``; query members that are None are left out."""
        return self.request("GET", path, query=query, attempts=attempts).json()

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        """Sends ``body`` as JSON; ``options`` are those of :meth:`request`."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        return self.request("POST", path, content=content, headers=headers, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        attempts: int = ATTEMPTS,
    ) -> Answer:
        """One request under the retry policy; raises what the server refused with."""
        headers = dict(headers or {})
        repeatable = repeatable or method in REPEATABLE or "Idempotency-Key" in headers
        retry = Retry(attempts if repeatable else 1)
        while True:
            try:
                with self._exchange(method, path, query, content, headers) as answer:
                    return Answer(str(answer.url), answer.read())
            except Transient as failure:
                retry.wait(failure)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Generator[Stream]:
        """One GET, tried once, whose body is read as it comes; a break raises :class:`Transient` in the block."""
        with self._exchange("GET", path, None, None, dict(headers or {})) as answer:
            yield Stream(answer.status_code, answer.iter_bytes())

    @contextmanager
    def _exchange(
        self, method: str, path: str, query: Mapping[str, Any] | None, content: bytes | None, headers: dict[str, str]
    ) -> Generator[httpx.Response]:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{PREFIX}{path}"
        try:
            with self._client.stream(method, url, params=params, content=content, headers=headers) as answer:
                self._refuse(answer)
                yield answer
        except httpx.TransportError as error:
            raise Transient(self._unreachable(error)) from error

    def _refuse(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        error = error_of(answer.status_code, answer.read(), str(answer.url))
        if answer.status_code in RETRIED:
            raise Transient(error, retry_after(answer.headers))
        raise error

    def _unreachable(self, error: Exception) -> FerretError:
        reason = str(error) or type(error).__name__
        return FerretError(
            "server.unreachable", f"{self.url} does not answer ({reason}); check the address, and that the server runs"
        )


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
