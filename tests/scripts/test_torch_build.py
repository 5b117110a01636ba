"""Which build of torch a machine gets."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from scripts import Refusal, torch_build


@pytest.mark.parametrize(
    ("asked", "platform", "driver", "offered", "build", "why", "index"),
    [
        ("", "linux", True, "by pip", "cuda", "driver", None),
        ("", "linux", False, "by pip", "cpu", "no NVIDIA driver", None),
        ("", "linux", False, "by PyTorch", "cpu", "no NVIDIA driver", torch_build.INDEX),
        (
            "",
            "linux",
            False,
            "",
            "cuda",
            f"within 3 s, {torch_build.INDEX}; to name another: PIP_EXTRA_INDEX_URL=",
            None,
        ),
        ("cpu", "linux", True, "by pip", "cpu", "TORCH=cpu", None),
        ("cpu", "linux", True, "by PyTorch", "cpu", "TORCH=cpu", torch_build.INDEX),
        ("cuda", "linux", False, "by pip", "cuda", "TORCH=cuda", None),
        ("", "darwin", False, "", "cpu", "PyPI's build for darwin", None),
        ("cpu", "darwin", False, "", "cpu", "PyPI's build for darwin", None),
    ],
)
def test_the_build_the_reason_and_the_index(asked, platform, driver, offered, build, why, index) -> None:
    offers = (lambda: offered == "by pip"), (lambda: offered == "by PyTorch")
    choice = torch_build.choose(asked, platform, driver, *offers)
    assert (choice.build, choice.index) == (build, index)
    assert why in choice.why


@pytest.mark.parametrize(
    ("asked", "platform", "message"),
    [
        ("gpu", "linux", "TORCH=gpu: must be cpu or cuda"),
        ("cpu", "linux", "name another: PIP_EXTRA_INDEX_URL="),
        ("cuda", "darwin", "no CUDA build of torch for darwin"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_next_step(asked, platform, message) -> None:
    with pytest.raises(Refusal, match=message):
        torch_build.choose(asked, platform, False, lambda: False, lambda: False)


def test_no_index_is_asked_where_a_driver_is() -> None:
    torch_build.choose("", "linux", True, *[lambda: pytest.fail("searched an index")] * 2)


def test_a_driver_is_known_by_its_program(tmp_path, monkeypatch) -> None:
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert torch_build.has_driver()


@pytest.fixture
def index() -> Iterator[tuple[str, list[bytes]]]:
    """The address of an index, and its page; without a page it never answers."""
    page: list[bytes] = []
    ended = Event()

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not page:
                ended.wait()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page[0])

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}", page
        ended.set()
        server.shutdown()


def test_pytorchs_index_is_searched_for_this_python_and_machine(index) -> None:
    address, page = index
    tag, machine = f"cp{sys.version_info.major}{sys.version_info.minor}", platform.machine()
    page.append(f'<a href="/whl/cpu/torch-2.13.0%2Bcpu-{tag}-{tag}-manylinux_2_28_{machine}.whl">'.encode())
    assert torch_build.lists("2.13.0+cpu", address)
    assert not torch_build.lists("2.14.0+cpu", address)
    page[0] = page[0].replace(tag.encode(), b"cp310")
    assert not torch_build.lists("2.13.0+cpu", address)


def test_an_index_without_an_answer_costs_no_more_than_its_seconds(index, monkeypatch) -> None:
    monkeypatch.setattr(torch_build, "SECONDS", 0.2)
    started = time.monotonic()
    assert not torch_build.lists("2.13.0+cpu", index[0])
    assert not torch_build.lists("2.13.0+cpu", "http://no-such-host.invalid")
    assert time.monotonic() - started < 3
