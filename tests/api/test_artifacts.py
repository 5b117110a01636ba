"""Downloads: digests, conditional requests and ranges (RFC 9110)."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.digest import digest_bytes
from ferret_db.engine import rounds
from tests.security.test_connections import Peer

DATA = bytes(range(256)) * 5_000  # several chunks


@pytest.fixture(scope="module")
def artifact(shared_site: Any) -> dict[str, Any]:
    return stored(shared_site, "model weights é.safetensors", DATA)


def stored(site: Any, name: str, data: bytes) -> dict[str, Any]:
    experiment_id = site.submit()
    site.start(experiment_id, [site.store(name, data)])
    (found,) = site.admin.get(f"/api/v1/experiments/{experiment_id}/artifacts").json()["items"]
    return found


def test_the_whole_file(shared_site: Any, artifact: dict[str, Any]) -> None:
    told = {"kind": "checkpoint", "round": 0, "size": len(DATA), "digest": digest_bytes(DATA)}
    assert told.items() <= artifact.items()
    answer = shared_site.admin.get(artifact["href"])
    assert answer.status_code == 200
    assert answer.content == DATA
    assert answer.headers["ETag"] == f'"{artifact["digest"]}"'
    assert answer.headers["Accept-Ranges"] == "bytes"
    assert answer.headers["Content-Length"] == str(len(DATA))
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == (
        "attachment; filename*=utf-8''model%20weights%20%C3%A9.safetensors"
    )


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=700000-", 700_000, len(DATA)),
        ("bytes=-5", len(DATA) - 5, len(DATA)),
        (f"bytes=-{len(DATA) * 2}", 0, len(DATA)),
        (f"bytes=100-{len(DATA) * 2}", 100, len(DATA)),
        (f"Bytes={len(DATA) - 1}-", len(DATA) - 1, len(DATA)),
    ],
)
def test_a_range(shared_site: Any, artifact: dict[str, Any], asked: str, start: int, end: int) -> None:
    answer = shared_site.admin.get(artifact["href"], headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == DATA[start:end]
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(DATA)}"
    assert answer.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", [f"bytes={len(DATA)}-", "bytes=-0", f"bytes={10**17}-"])
def test_a_range_outside_the_file(shared_site: Any, artifact: dict[str, Any], asked: str) -> None:
    answer = shared_site.admin.get(artifact["href"], headers={"Range": asked})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{len(DATA)}"
    assert answer.json()["code"] == "range.invalid"
    assert str(len(DATA)) in answer.json()["detail"]


@pytest.mark.parametrize("asked", ["bytes=5-2", "bytes=-", "lines=1-2", "bytes=0-1,4-5", "bytes=a-b", "nonsense"])
def test_a_range_that_is_none_gives_the_whole_file(shared_site: Any, artifact: dict[str, Any], asked: str) -> None:
    answer = shared_site.admin.get(artifact["href"], headers={"Range": asked})
    assert answer.status_code == 200
    assert answer.content == DATA


def test_if_range_continues_the_same_file_and_restarts_another(shared_site: Any, artifact: dict[str, Any]) -> None:
    same = {"Range": "bytes=10-", "If-Range": f'"{artifact["digest"]}"'}
    assert shared_site.admin.get(artifact["href"], headers=same).status_code == 206
    for other in ('"another"', f'W/"{artifact["digest"]}"', "Sat, 21 Nov 2026 00:00:00 GMT"):
        answer = shared_site.admin.get(artifact["href"], headers=same | {"If-Range": other})
        assert answer.status_code == 200
        assert answer.content == DATA


@pytest.mark.parametrize("form", ['"{}"', 'W/"{}"', '"other", "{}"', "*"])
def test_if_none_match_saves_the_download(shared_site: Any, artifact: dict[str, Any], form: str) -> None:
    answer = shared_site.admin.get(artifact["href"], headers={"If-None-Match": form.format(artifact["digest"])})
    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["ETag"] == f'"{artifact["digest"]}"'
    assert shared_site.admin.get(artifact["href"], headers={"If-None-Match": '"other"'}).status_code == 200


def test_an_empty_file(site: Any) -> None:
    answer = site.admin.get(stored(site, "empty", b"")["href"])
    assert (answer.status_code, answer.content) == (200, b"")


def test_the_list_is_read_page_by_page(shared_site: Any) -> None:
    site, experiment_id = shared_site, shared_site.submit()
    names = [f"part-{number}.safetensors" for number in range(3)]
    site.start(experiment_id, [site.store(name, name.encode()) for name in names])
    path = f"/api/v1/experiments/{experiment_id}/artifacts"
    first = site.admin.get(path, params={"limit": 2}).json()
    rest = site.admin.get(path, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [file["name"] for file in first["items"] + rest["items"]] == names
    assert rest["next_cursor"] is None


def test_the_best_of_the_kept_checkpoints_is_marked_on_whichever_page_it_is(shared_site: Any) -> None:
    site, experiment_id = shared_site, shared_site.submit(rounds=9)
    site.start(experiment_id, [site.store("base", b"0")])
    for number, loss in enumerate((2.0, 1.0, 3.0), start=1):
        site.committed(experiment_id, number, files=[] if number == 2 else [site.store("later", b"%d" % number)])
        with site.database.begin() as s:
            rounds.record_evaluation(s, experiment_id, number, {"eval_loss": loss})
    path = f"/api/v1/experiments/{experiment_id}/artifacts"
    first = site.admin.get(path, params={"limit": 1}).json()
    rest = site.admin.get(path, params={"cursor": first["next_cursor"]}).json()
    found = [(file["round"], file["best"]) for file in first["items"] + rest["items"]]
    assert found == [(0, False), (1, True), (3, False)]
    best = {"metric": "eval_loss", "round": 2, "value": 1.0}
    assert (site.show(experiment_id)["best"], site.show(experiment_id)["decline"]) == (best, None)
    site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    decline = site.show(experiment_id)["decline"]
    assert (decline["round"], decline["best"]) == (3, best)


@pytest.mark.parametrize("asked", [{}, {"Range": "bytes=10-19"}, {"Range": f"bytes={len(DATA)}-"}])
def test_head_tells_what_a_download_would_bring(
    shared_site: Any, artifact: dict[str, Any], asked: dict[str, str]
) -> None:
    whole = shared_site.admin.get(artifact["href"])
    answer = shared_site.admin.head(artifact["href"], headers=asked)
    assert (answer.status_code, answer.content) == (200, b"")
    for name in ("Content-Length", "Content-Type", "Content-Disposition", "ETag", "Accept-Ranges"):
        assert answer.headers[name] == whole.headers[name]
    known = {"If-None-Match": f'"{artifact["digest"]}"'}
    assert shared_site.admin.head(artifact["href"], headers=known).status_code == 304
    assert shared_site.admin.head(f"{artifact['href']}0").status_code == 404


def test_head_sends_no_byte_of_the_file(serve: Any, make_settings: Any) -> None:
    live = serve(make_settings())
    file = stored(live.site, "weights", DATA)
    token = live.site.admin.headers["Authorization"]
    with Peer(live.port) as peer:
        head = f"HEAD {file['href']} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nConnection: close\r\n"
        peer.send(f"{head}\r\n".encode())
        head, _, body = peer.rest().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert f"content-length: {len(DATA)}".encode() in head.lower()
    assert body == b""


def test_head_answers_problems_as_a_download_does(site: Any) -> None:
    artifact = stored(site, "gone", DATA)
    for path in (site.context.settings.home / "storage").rglob(artifact["digest"]):
        path.unlink()
    assert site.admin.head(artifact["href"]).status_code == 500
