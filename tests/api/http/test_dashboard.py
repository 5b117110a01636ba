"""The dashboard's files, and that they never hide the API."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from ferret_api.http.dashboard import accepted, dashboard

SCRIPT = b"console.log(1)" * 100
COPIES = {"br": b"as brotli", "gzip": gzip.compress(SCRIPT)}


@pytest.fixture
def built(site: Any, tmp_path: Path) -> Any:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><title>Ferret</title>")
    (static / "docs.html").write_text("<!doctype html><title>The REST API</title>")
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "index-Ab3d.js").write_bytes(SCRIPT)
    (static / "assets" / "index-Ab3d.js.br").write_bytes(COPIES["br"])
    (static / "assets" / "index-Ab3d.js.gz").write_bytes(COPIES["gzip"])
    (static / "assets" / "small-Ab3d.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    site.app.router.default = dashboard(static)
    return site.client()


@pytest.mark.parametrize("path", ["/", "/experiments", "/experiments/exp_1?tab=rounds", "/index.html"])
def test_the_index_answers_for_every_page_and_is_never_kept(built: Any, path: str) -> None:
    answer = built.get(path)
    assert answer.status_code == 200
    assert "<title>Ferret</title>" in answer.text
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["Content-Type"].startswith("text/html")


def test_the_rest_api_has_a_page_of_its_own_under_the_same_policy(built: Any) -> None:
    answer, index = built.get("/docs"), built.get("/")
    assert "<title>The REST API</title>" in answer.text
    for name in ("Cache-Control", "Content-Security-Policy", "Content-Type"):
        assert answer.headers[name] == index.headers[name]
    assert "<title>Ferret</title>" in built.get("/docs/more").text


def test_a_page_is_only_read(built: Any) -> None:
    answer = built.post("/session")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert answer.json()["detail"] == "POST is not allowed here; use GET, HEAD"


def raw(client: Any, path: str, **headers: str) -> tuple[Any, bytes]:
    """The answer, and its body as it was sent."""
    with client.stream("GET", path, headers=headers) as answer:
        return answer, b"".join(answer.iter_raw())


@pytest.mark.parametrize(
    ("takes", "coding"),
    [("gzip, deflate, br, zstd", "br"), ("gzip", "gzip"), ("br;q=0, *", "gzip"), ("identity", None), ("", None)],
)
def test_a_client_gets_the_smallest_copy_that_it_reads(built: Any, takes: str, coding: str | None) -> None:
    answer, body = raw(built, "/assets/index-Ab3d.js", **{"Accept-Encoding": takes})
    assert answer.status_code == 200
    assert body == (COPIES[coding] if coding else SCRIPT)
    assert answer.headers.get("Content-Encoding") == coding
    assert answer.headers["Content-Length"] == str(len(body))
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert "javascript" in answer.headers["Content-Type"]
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_each_copy_has_a_tag_of_its_own(built: Any) -> None:
    path = "/assets/index-Ab3d.js"
    tags = {
        coding: raw(built, path, **{"Accept-Encoding": coding})[0].headers["ETag"] for coding in (*COPIES, "identity")
    }
    assert len(set(tags.values())) == 3
    for coding, tag in tags.items():
        answer, body = raw(built, path, **{"Accept-Encoding": coding, "If-None-Match": tag})
        assert (answer.status_code, body) == (304, b"")
        assert (answer.headers["ETag"], answer.headers["Vary"]) == (tag, "Accept-Encoding")
        assert "Content-Encoding" not in answer.headers
    stranger = raw(built, path, **{"Accept-Encoding": "gzip", "If-None-Match": tags["br"]})[0]
    assert stranger.status_code == 200


def test_only_the_head_of_a_copy(built: Any) -> None:
    answer = built.head("/assets/index-Ab3d.js", headers={"Accept-Encoding": "gzip"})
    assert (answer.headers["Content-Encoding"], answer.content) == ("gzip", b"")
    assert answer.headers["Content-Length"] == str(len(COPIES["gzip"]))


def test_a_file_without_copies_is_the_same_for_all(built: Any) -> None:
    answer, body = raw(built, "/assets/small-Ab3d.js", **{"Accept-Encoding": "br, gzip"})
    assert body == b"1"
    assert "Content-Encoding" not in answer.headers
    assert "Vary" not in answer.headers


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("br, gzip", ["br", "gzip"]),
        ("GZIP ; q=0.5 , br; q=0", ["gzip"]),
        ("*;q=0.1", ["br", "gzip"]),
        ("*, br;q=0.0", ["gzip"]),
        ("gzip;q=much", []),
        ("deflate", []),
        ("", []),
        (",;,", []),
    ],
)
def test_what_a_client_reads(header: str, expected: list[str]) -> None:
    assert accepted(header, ["br", "gzip"]) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/assets/gone.js",
        "/assets/gone",
        "/assets",
        "/assets/index-Ab3d.js.gz",
        f"/{'x' * 5000}.js",
        "/api/v1/nowhere",
        "/api/nothing",
        "/api",
        "/..%2fsecret.txt",
        "/%00.js",
    ],
)
def test_what_is_no_page_is_a_problem_even_for_a_browser(built: Any, path: str) -> None:
    answer = built.get(path, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (404, "route.not_found")
    assert "immutable" not in answer.headers.get("Cache-Control", "")


def test_without_a_build_the_root_says_how_to_make_one(site: Any, tmp_path: Path) -> None:
    site.app.router.default = dashboard(tmp_path / "nothing")
    answer = site.client().get("/")
    assert answer.status_code == 200
    assert "make web" in answer.text
    assert site.client().get("/experiments").status_code == 404
