from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk.service.server_address import Address, resolve, split
from tests.refusals import refused


@pytest.fixture
def home() -> Path:
    import os

    path = Path(os.environ["FERRET_HOME"])
    path.mkdir()
    (path / "server.json").write_text(json.dumps({"url": "http://127.0.0.1:9999", "pid": 1}))
    (path / "admin.token").write_text("local-token\n")
    return path


def test_the_printed_address_is_enough():
    assert resolve("http://127.0.0.1:8765/#token=abc") == Address("http://127.0.0.1:8765", "abc")


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("HTTPS://Ferret.Example.ORG:443/", "https://ferret.example.org"),
        ("http://ferret.example.org:80/x/", "http://ferret.example.org/x"),
        ("https://ferret.example.org:80", "https://ferret.example.org:80"),
        ("http://[::1]:80", "http://[::1]"),
        ("http://ada:Key@Host:8765", "http://ada:Key@host:8765"),
    ],
)
def test_an_address_has_one_spelling(url: str, same: str) -> None:
    assert split(url).url == same


def test_the_server_of_this_machine_is_found(home):
    assert resolve() == Address("http://127.0.0.1:9999", "local-token")


def test_without_anything_the_usual_address_is_tried():
    assert resolve() == Address("http://127.0.0.1:8765", None)


def test_the_environment_comes_before_the_home(home, monkeypatch):
    monkeypatch.setenv("FERRET_URL", "https://ferret.example.org/ferret/")
    monkeypatch.setenv("FERRET_TOKEN", "given")
    assert resolve() == Address("https://ferret.example.org/ferret", "given")
    assert resolve("http://127.0.0.1:1", "mine") == Address("http://127.0.0.1:1", "mine")


def test_the_local_token_is_never_shown_to_another_machine(home):
    assert resolve("https://ferret.example.org").token is None


def test_the_token_may_stand_in_a_file(home, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("FERRET_TOKEN_FILE", str(tmp_path / "token"))
    assert resolve("https://ferret.example.org").token == "from-file"


def test_a_token_file_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("FERRET_TOKEN_FILE", "/nowhere/token")
    with refused("auth.missing", "/nowhere/token") as raised:
        resolve()
    assert raised.value.problem.exit == 4


@pytest.mark.parametrize("url", ["127.0.0.1:8765", "ftp://x", "http://", "http://x:port", "nonsense", "http://[::1"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(FerretError) as raised:
        resolve(url)
    assert raised.value.problem.exit == 2
    assert url in raised.value.detail
