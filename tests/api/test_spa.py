"""The dashboard's files, and that they never hide the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferret_api.spa import dashboard


@pytest.fixture
def built(site: Any, tmp_path: Path) -> Any:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html><title>Ferret</title>")
    (static / "favicon.svg").write_text("<svg/>")
    (static / "assets" / "index-Ab3d.js").write_text("console.log(1)")
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


def test_hashed_files_are_kept_for_good(built: Any) -> None:
    answer = built.get("/assets/index-Ab3d.js")
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert "javascript" in answer.headers["Content-Type"]
    assert built.get("/favicon.svg").headers["Cache-Control"] == "no-cache"


def test_an_unchanged_file_is_not_sent_again(built: Any) -> None:
    etag = built.get("/").headers["ETag"]
    answer = built.get("/", headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    ["/assets/gone.js", f"/{'x' * 5000}.js", "/api/v1/nowhere", "/api/nothing", "/api", "/..%2fsecret.txt", "/%00.js"],
)
def test_what_is_no_page_is_a_problem_even_for_a_browser(built: Any, path: str) -> None:
    answer = built.get(path, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (404, "route.not_found")


def test_without_a_build_the_root_says_how_to_make_one(site: Any, tmp_path: Path) -> None:
    site.app.router.default = dashboard(tmp_path / "nothing")
    answer = site.client().get("/")
    assert answer.status_code == 200
    assert "make web" in answer.text
    assert site.client().get("/experiments").status_code == 404
