"""The JSON of a hostile server takes little memory at a site, whatever it holds."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk import Service
from ferret_sdk.http.transport import MAX_ANSWER_BYTES
from ferret_sdk.service.base_model_weights import require_own_files
from tests.security.hostile import HostileServer, body_reply
from tests.tiers import slow

SHAPES = [b"{}", b"[[]]", b'{"ab":{}}', b"300", b'"abc"', '"\U0001f600"'.encode()]
MOST = 120 << 20
"""Of memory, in bytes. Before, 64 MB of JSON took 2.6 GB."""


def repeated(unit: bytes, size: int) -> bytes:
    return b"[" + b",".join([unit] * (size // (len(unit) + 1))) + b"]"


@pytest.fixture
def server(impatient: None, tmp_path: Path) -> Iterator[HostileServer]:
    with HostileServer(tmp_path, {}, "0" * 64).running() as running:
        yield running


def peak(do: Callable[[], Any]) -> int:
    """The most memory that the call had, in bytes, and the code that it raised."""
    tracemalloc.start()
    try:
        with pytest.raises(FerretError) as raised:
            do()
        assert raised.value.code == "server.unexpected"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [*SHAPES[:2], *slow(*SHAPES[2:])], ids=lambda shape: shape.decode())
def test_the_longest_answer_takes_little_memory(server: HostileServer, shape: bytes) -> None:
    server.replies["/info"] = body_reply(repeated(shape, MAX_ANSWER_BYTES - 1024))
    assert peak(Service(server.url).info) < MOST


@pytest.mark.slow
def test_so_does_one_of_64_megabytes(server: HostileServer) -> None:
    server.replies["/info"] = body_reply(repeated(b"{}", 64 << 20))
    assert peak(Service(server.url).info) < MOST


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b'"' * (1 << 20),
        b'"' + b'\\"' * (1 << 20),
        b'"' + b'\\"' * (1 << 20) + b"\\",
        b'""' * (1 << 20),
        json.dumps(["\u2200" + "[]," * 1000]).encode("utf-16-le"),
        b"[" + b"9" * 5000 + b"]",
    ],
    ids=["deep", "65 levels", "quotes", "escapes", "an end in an escape", "texts", "UTF-16", "a long number"],
)
def test_what_is_made_to_confuse_is_refused_at_once(server: HostileServer, text: bytes) -> None:
    server.replies["/info"] = body_reply(text)
    assert peak(Service(server.url).info) < MOST


@pytest.mark.parametrize("name", ["config.json", *slow("model.safetensors.index.json", "generation_config.json")])
def test_so_does_a_file_of_the_base_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"weight_map":' + repeated(b"{}", (16 << 20) - 1024) + b"}")
    assert peak(lambda: require_own_files(tmp_path)) < MOST


@pytest.mark.slow
def test_a_tokenizer_of_very_many_values_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(repeated(b"{}", 60 << 20))
    assert peak(lambda: require_own_files(tmp_path)) < MOST


@pytest.mark.slow
def test_a_large_tokenizer_is_not(tmp_path: Path) -> None:
    words = {f"word{number}": number for number in range(256_000)}
    merges = [[f"wo{number}", "rd"] for number in range(400_000)]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words, "merges": merges}}))
    require_own_files(tmp_path)
