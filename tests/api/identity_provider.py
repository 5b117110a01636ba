"""Providers of OpenID Connect: a real one in a process of its own, and one that says what a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "ferret"
SECRET = "the client's secret"
ROLES = {"hospital-admins": "admin", "hospital-research": "researcher", "hospital-staff": "viewer"}
ADA = {"sub": "10ea", "preferred_username": "Ada", "groups": ["staff", "hospital-research"]}
EVE = {"sub": "10eb", "preferred_username": "eve", "groups": ["strangers"]}


def settings(issuer: str, **changes: Any) -> dict[str, Any]:
    """Of the API, with the provider."""
    return {
        "oidc_issuer": issuer,
        "oidc_client_id": CLIENT_ID,
        "oidc_client_secret": SECRET,
        "oidc_name": "Hospital",
        "oidc_roles": ROLES,
        **changes,
    }


@contextmanager
def started(*people: dict[str, Any]) -> Generator[str]:
    """The issuer of a ``oidc-provider-mock`` at which these people have accounts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
    command += [part for person in people for part in ("--user-claims", json.dumps(person))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    issuer = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{issuer}/.well-known/openid-configuration", process)
        yield issuer
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None, "the provider did not start"
        try:
            httpx.get(url).raise_for_status()
            return
        except httpx.TransportError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def agree(address: str, subject: str) -> dict[str, str]:
    """Signs in at the real provider as a browser would: what it comes back with."""
    answer = httpx.post(address, data={"sub": subject})
    assert answer.status_code == 302, answer.text
    return query(answer.headers["Location"])


def query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


class Forger:
    """A provider whose answers a test changes: ``claims``, ``header``, ``key`` of the ID token, ``metadata``, ``token``
    for the whole answer of the token endpoint, ``userinfo``, ``seconds`` until it answers."""

    def __init__(self) -> None:
        self.public = self.key = RSAKey.generate_key(2048, {"kid": "1"})
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "1"}
        self.metadata: dict[str, Any] = {}
        self.token: tuple[int, dict[str, Any]] | None = None
        self.userinfo: dict[str, Any] = {}
        self.seconds = 0.0
        self.asked: dict[str, str] = {}
        self.posted: dict[str, str] = {}
        forger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(200, forger._read(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                forger.posted = query(f"?{body}") | {"authorization": self.headers.get("Authorization", "")}
                self._send(*(forger.token or forger._issue()))

            def _send(self, status: int, document: Any) -> None:
                time.sleep(forger.seconds)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    def agree(self, address: str) -> dict[str, str]:
        """What the browser comes back with that was sent to ``address``."""
        self.asked = query(address)
        return {"state": self.asked["state"], "code": "a-code"}

    def sign_by_secret(self) -> None:
        """With what everybody knows as the key: the provider's public one."""
        self.header = {"alg": "HS256", "kid": "1"}

    def _read(self, path: str) -> dict[str, Any]:
        if path == "/keys":
            return {"keys": [self.public.as_dict(private=False)]}
        if path == "/userinfo":
            return self.userinfo
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            **self.metadata,
        }

    def _issue(self) -> tuple[int, dict[str, Any]]:
        hashed = hashlib.sha256(self.posted.get("code_verifier", "").encode()).digest()
        if _encoded(hashed) != self.asked["code_challenge"]:
            return 400, {"error": "invalid_grant", "error_description": "wrong code_verifier"}
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": self.asked["nonce"],
            **ADA,
            **self.claims,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        return 200, {"access_token": "a", "token_type": "Bearer", "id_token": self._signed(kept)}

    def _signed(self, claims: dict[str, Any]) -> str:
        signed = f"{_encoded(json.dumps(self.header).encode())}.{_encoded(json.dumps(claims).encode())}"
        if self.header["alg"] == "none":
            return f"{signed}."
        if self.header["alg"] == "HS256":  # which joserfc does not do with such a key
            known = self.public.as_pem(private=False)
            return f"{signed}.{_encoded(hmac.digest(known, signed.encode(), 'sha256'))}"
        return jwt.encode(self.header, claims, self.key, algorithms=[self.header["alg"]])


def _encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).decode().rstrip("=")
