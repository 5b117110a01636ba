"""The only module that speaks HTTP."""

from __future__ import annotations

import json
import ssl
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from ferret_core.protocol import bounded_json
from ferret_core.protocol.errors import FerretError, field_errors
from ferret_core.protocol.resources.base import API_PATH, Page
from ferret_sdk.http import certificates, proxies
from ferret_sdk.http.certificates import pinned
from ferret_sdk.http.problems import error_of
from ferret_sdk.http.retry import ATTEMPTS, Retry, Transient, retry_after

REPEATABLE = frozenset({"GET", "PUT", "DELETE"})
RETRIED = frozenset({408, 429, 502, 503, 504})
NOT_MODIFIED = 304
TIMEOUT = httpx.Timeout(60.0, connect=5.0)
MAX_ANSWER_BYTES = 8 << 20
"""Maximum bytes of a response that is read into memory, unless the caller expects another length.

A page of a list has tens of kilobytes, and the shapes of a model with 20,000 parameters have 2 MB.
"""
CHUNK_BYTES = 64 << 10
MAX_PROBLEM_BYTES = 64 << 10
"""Maximum bytes that are read of an error response."""
_READ = httpx.ByteStream(b"")
Model = TypeVar("Model", bound=BaseModel)


def trace_headers() -> dict[str, str]:
    """Returns W3C's ``traceparent``, and ``tracestate`` if present, of the span of a request."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carried: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carried)
    return carried


@dataclass(frozen=True)
class Answer:
    """A complete response."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    unchanged: bool
    """True if the response matches the request's ``If-None-Match``; it has no body (RFC 9110, section 15.4.5)."""
    at_most: int
    """Maximum bytes that the body could have had."""

    def json(self) -> Any:
        """Returns the body's JSON value. Raises ``server.unexpected`` if it is missing, too large or too deep."""
        try:
            return bounded_json.parse(self.body, self.at_most)
        except ValueError as error:
            detail = f"{self.url} answered with no JSON, or too much of it: is this the address of a Ferret server?"
            raise FerretError("server.unexpected", detail) from error


@dataclass(frozen=True)
class Stream:
    """A response with a body that arrives in ``chunks``."""

    status: int
    chunks: Iterator[bytes]


class Traffic:
    """Bytes of all bodies sent and received, failed requests included. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.up = 0
        self.down = 0

    def add(self, up: int, down: int) -> None:
        with self._lock:
            self.up += up
            self.down += down

    def received(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the chunks and counts each."""
        for chunk in chunks:
            self.add(0, len(chunk))
            yield chunk

    def count(self, request: httpx.Request) -> None:
        """Counts the request's body while it is sent. An unsent body counts nothing."""
        request.stream = _Counted(request.read(), self)


class _Counted(httpx.SyncByteStream):
    """A body in chunks that counts each chunk after it is sent."""

    def __init__(self, content: bytes, traffic: Traffic) -> None:
        self._content = content
        self._traffic = traffic

    def __iter__(self) -> Iterator[bytes]:
        for begin in range(0, len(self._content), CHUNK_BYTES):
            chunk = self._content[begin : begin + CHUNK_BYTES]
            yield chunk
            self._traffic.add(len(chunk), 0)


class Transport:
    """A client of one server, by paths below ``/api/v1``; safe to use from several threads.

    Retry policy: a request is repeated only if that cannot do harm. This holds for GET, PUT and DELETE, for a POST with
    an ``Idempotency-Key`` and for requests marked ``repeatable``. A request is repeated when the connection fails,
    breaks or times out, and on 408, 429, 502, 503 and 504; :class:`ferret_sdk.http.retry.Retry` defines how often and
    when. Everything else is final and raised as the server's :class:`FerretError`. A server that cannot be reached is
    ``server.unreachable``.

    The server is not trusted: redirects are not followed, responses are not decompressed, and none is read beyond its
    bound. Plain http to another machine is refused (``request.invalid``) unless ``insecure_http`` is set: anybody on
    the way could read the token and change the responses.

    Certificates are checked by :func:`ferret_sdk.http.certificates.context` for ``ca``. For a server of this machine
    with a known certificate, only the one in the file ``certificate`` is trusted. The environment's proxies
    (:mod:`ferret_sdk.http.proxies`) are used for other machines. ``certificate.invalid``, ``proxy.refused`` and a web
    page in place of data (``server.unexpected``) need a person's help and are final.

    ``on_request`` is called with every request, each time it is sent, and may raise to prevent that.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        insecure_http: bool = False,
        ca: Path | None = None,
        certificate: Path | None = None,
        on_request: Callable[[httpx.Request], None] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        if not (insecure_http or is_loopback(self.url) or urlsplit(self.url).scheme == "https"):
            message = "is not encrypted: use https://…, or allow it with --insecure-http on a network you trust"
            raise FerretError.of_field("request.invalid", "url", self.url, message)
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
        # A proxy for the outside world must not come between a laptop and its local server.
        outside = certificate is None and not is_loopback(self.url)
        self._proxy = proxies.of(self.url) if outside else None
        verify = pinned(certificate) if certificate else certificates.context(ca)
        self._client = _client(headers, verify, trust_env=outside)
        self.traffic = Traffic()
        hooks = [] if on_request is None else [on_request]
        self._client.event_hooks = {"request": [*hooks, self.traffic.count]}
        # The connections end with the last Service, Run or Participant that uses them.
        weakref.finalize(self, self._client.close)

    def get(self, path: str, attempts: int = ATTEMPTS, at_most: int = MAX_ANSWER_BYTES, **query: Any) -> Any:
        """Returns the JSON at ``path``, of at most ``at_most`` bytes. Query members that are None are left out."""
        return self.request("GET", path, query=query, attempts=attempts, at_most=at_most).json()

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        """Sends ``body`` as JSON. ``options`` are passed to :meth:`request`."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        return self.request("POST", path, content=content, headers=headers, **options)

    def patch(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """Sends ``body`` as JSON, which may be repeated."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self.request("PATCH", path, content=json.dumps(body).encode(), headers=headers, repeatable=True)

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
        at_most: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Sends one request under the retry policy. Raises the server's error."""
        headers = dict(headers or {})
        repeatable = repeatable or method in REPEATABLE or "Idempotency-Key" in headers
        retry = Retry(attempts if repeatable else 1)
        while True:
            try:
                return self.once(method, path, content, headers, query=query, at_most=at_most)
            except Transient as failure:
                retry.wait(failure)

    def once(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        query: Mapping[str, Any] | None = None,
        at_most: int = MAX_ANSWER_BYTES,
    ) -> Answer:
        """Sends one request, once. Raises :class:`Transient` for failures worth retrying."""
        with self._exchange(method, path, query, content, dict(headers)) as answer:
            body = self._read(answer, at_most)
            return Answer(str(answer.url), body, answer.headers, answer.status_code == NOT_MODIFIED, at_most)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str] | None = None) -> Generator[Stream]:
        """Sends one GET, once, and yields its body as it arrives. A break raises :class:`Transient` in the block."""
        with self._exchange("GET", path, None, None, dict(headers or {})) as answer:
            yield Stream(answer.status_code, self.traffic.received(answer.iter_raw()))

    def headers_of(self, method: str, path: str, size: int, headers: Mapping[str, str]) -> dict[str, str]:
        """Returns all headers of this request, with a body of ``size`` bytes. Sends nothing."""
        headers = {**headers, "Content-Length": str(size), **trace_headers()}
        return dict(self._client.build_request(method, f"{self.url}{API_PATH}{path}", headers=headers).headers)

    @contextmanager
    def _exchange(
        self, method: str, path: str, query: Mapping[str, Any] | None, content: bytes | None, headers: dict[str, str]
    ) -> Generator[httpx.Response]:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        url = f"{self.url}{API_PATH}{path}"
        headers |= trace_headers()
        try:
            with self._answered(method, url, params=params, content=content, headers=headers) as answer:
                self._refuse(answer)
                yield answer
        except httpx.ProxyError as error:
            raise self._refused_by_proxy(error) from error
        except httpx.TransportError as error:
            if (refused := certificates.refused(self.url, error)) is not None:
                raise refused from error
            raise Transient(self._unreachable(error)) from error

    @contextmanager
    def _answered(self, method: str, url: str, **request: Any) -> Generator[httpx.Response]:
        """Opens a response and afterwards breaks the reference cycle of response, stream and request.

        So they are freed immediately, and the parts of a large upload do not wait in memory for the garbage collector.
        """
        with self._client.stream(method, url, **request) as answer:
            yield answer
        answer.stream = _READ

    def _read(self, answer: httpx.Response, at_most: int) -> bytes:
        """Returns the whole body, if it has at most ``at_most`` bytes."""
        body = self._beginning(answer, at_most + 1)
        if len(body) > at_most:
            raise FerretError("server.unexpected", f"{answer.url} answered with more than {at_most} bytes")
        return body

    def _beginning(self, answer: httpx.Response, count: int) -> bytes:
        """Returns at most the first ``count`` bytes of the body, without waiting for the rest."""
        body = bytearray()
        for chunk in self.traffic.received(answer.iter_raw()):
            body += chunk
            if len(body) >= count:
                break
        return bytes(body[:count])

    def _refuse(self, answer: httpx.Response) -> None:
        if answer.has_redirect_location:
            raise FerretError("server.unexpected", _redirected(answer))
        if answer.status_code == proxies.LOGIN_NEEDED:
            raise proxies.refused(self.url, self._proxy, answer.status_code)
        if answer.status_code == NOT_MODIFIED and "if-none-match" in answer.request.headers:
            return
        page = answer.headers.get("content-type", "").startswith("text/html")
        if answer.is_success and not page:
            _refuse_compressed(answer)
            return
        body, url = self._beginning(answer, MAX_PROBLEM_BYTES), str(answer.url)
        if page:
            error = proxies.web_page(url, self._proxy, answer.status_code, body)
        else:
            error = error_of(answer.status_code, body, url)
        if answer.status_code in RETRIED:
            raise Transient(error, retry_after(answer.headers))
        raise error

    def _unreachable(self, error: Exception) -> FerretError:
        reason = str(error) or type(error).__name__
        way, also = (f" by way of {self._proxy}", ", the proxy") if self._proxy else ("", "")
        detail = f"{self.url} does not answer{way} ({reason}); check the address{also}, and that the server runs"
        return FerretError("server.unreachable", detail)

    def _refused_by_proxy(self, error: httpx.ProxyError) -> FerretError | Transient:
        """Converts the proxy's response to CONNECT (RFC 9110, section 9.3.6): an unreachable server may come back."""
        status = int(text) if (text := str(error)[:3]).isdigit() else 0
        if status in RETRIED:
            return Transient(self._unreachable(error))
        return proxies.refused(self.url, self._proxy, status)


def _client(headers: dict[str, str], verify: ssl.SSLContext, *, trust_env: bool) -> httpx.Client:
    try:
        return httpx.Client(headers=headers, timeout=TIMEOUT, verify=verify, trust_env=trust_env)
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        detail = f"HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or NO_PROXY cannot be used: {error}; write http://HOST:PORT"
        raise FerretError("request.invalid", detail) from error


def _refuse_compressed(answer: httpx.Response) -> None:
    """Refuses a compressed response: a few bytes can expand to any size, and no compression was requested."""
    encoding = answer.headers.get("content-encoding", "identity")
    if encoding != "identity":
        message = "was not asked for; check the proxy in front of the server"
        raise FerretError.of_field("server.unexpected", "Content-Encoding", encoding[:200], message)


def _redirected(answer: httpx.Response) -> str:
    where = answer.headers["location"][:500]
    return f"{answer.url} redirects to {where}: no redirect is followed; if you trust that address, give it yourself"


def is_loopback(url: str) -> bool:
    """Returns True if the address is this machine's."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def read_model(kind: type[Model], value: Any) -> Model:
    """Returns ``value``, sent by a server, as a ``kind``. Raises ``server.unexpected`` with the wrong fields."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise FerretError.of_fields("server.unexpected", field_errors(error, [kind.__name__.lower()])) from error


def list_items(transport: Transport, path: str, kind: type[Model], **query: Any) -> Iterator[Model]:
    """Every item of the list, in the server's order; a page is fetched when the one before is used up.

    Raises ``server.unexpected`` for an item that is not of its ``kind``, and for a list that does not advance.
    """
    cursor: str | None = None
    while True:
        page = read_model(Page[Any], transport.get(path, cursor=cursor, **query))
        yield from (read_model(kind, item) for item in page.items)
        if page.next_cursor is None:
            return
        if not page.items or page.next_cursor == cursor:
            message = "leads to a page that was seen or is empty"
            raise FerretError.of_field("server.unexpected", "next_cursor", page.next_cursor[:200], message)
        cursor = page.next_cursor
