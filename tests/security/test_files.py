"""Files that a specification names: nothing on which reading never ends, nothing without bound, no word of a secret."""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import PluginChoice
from ferret_core.system import untrusted_files

SECRET = "root:$6$hunter2:19000:0:99999:7:::"
"""As a line of ``/etc/shadow``."""
SECRETS = {
    "shadow": f"{SECRET}\n{SECRET}\n".encode(),
    "environ": f"FERRET_BROKER_URL=redis://:{SECRET}@127.0.0.1\0PATH=/bin\0".encode(),
    "json-text": json.dumps(SECRET).encode() + b"\n",
    "json-key": json.dumps({SECRET: 1}).encode() + b"\n",
    "json-broken": b'{"a": "' + SECRET.encode(),
    "json-escape": b'{"a": "' + SECRET.encode() + b'\\q"}',
    "not-utf-8": SECRET.encode() + b"\xff\xfe" + SECRET.encode(),
    "json-list": json.dumps([SECRET]).encode(),
}
DATASETS: dict[str, Callable[[str], dict[str, Any]]] = {
    "jsonl": lambda path: {"train": path},
    "gsm8k": lambda path: {"train": path, "test": path},
    "dolly": lambda path: {"path": path},
    "codealpaca": lambda path: {"path": path},
    "natural_instructions": lambda path: {"tasks": path},
}


def refusal(name: str, options: dict[str, Any], split: str = "train") -> FerretError:
    with pytest.raises(FerretError) as caught:
        getattr(catalog.dataset(PluginChoice.model_validate({"name": name, **options})), split)()
    assert caught.value.code == "dataset.invalid"
    return caught.value


@pytest.fixture(params=["pipe", "socket", "device", "folder"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """What is no regular file, and its name."""
    kind, path = str(request.param), tmp_path / "special.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path = Path("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
                yield kind, path
                return
    yield kind, path


@pytest.mark.parametrize("name", sorted(set(DATASETS) - {"natural_instructions"}))
def test_what_is_no_regular_file_is_never_waited_for(name: str, special: tuple[str, Path]) -> None:
    kind, path = special
    error = refusal(name, DATASETS[name](str(path)))
    assert f"is a {kind}, not a file" in error.detail
    assert str(path) in error.detail


def test_a_list_of_tasks_and_a_task_are_no_exception(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "tasks").mkdir()
    options = {"tasks": str(tmp_path), "train_tasks": str(tmp_path / "pipe")}
    assert "is a pipe, not a file" in refusal("natural_instructions", options).detail
    assert "is a device, not a file" in refusal("natural_instructions", options | {"train_tasks": "/dev/zero"}).detail
    (tmp_path / "list").write_text("../../../etc/passwd\n")
    assert (
        "line 1 is not the name of a task"
        in refusal("natural_instructions", options | {"train_tasks": str(tmp_path / "list")}).detail
    )


@pytest.mark.parametrize("content", SECRETS)
@pytest.mark.parametrize("name", DATASETS)
def test_no_error_quotes_what_stands_in_a_file(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / "somebody-elses-file"
    path.write_bytes(SECRETS[content])
    for split in ("train", "test"):
        told = json.dumps(refusal(name, DATASETS[name](str(path)), split).to_json())
        assert "hunter2" not in told
        assert str(path) in told


@pytest.mark.parametrize("content", SECRETS)
def test_nor_does_one_about_a_list_of_tasks(content: str, tmp_path: Path) -> None:
    path = tmp_path / "shadow"
    path.write_bytes(SECRETS[content])
    (tmp_path / "tasks").mkdir()
    told = json.dumps(refusal("natural_instructions", {"tasks": str(tmp_path), "train_tasks": str(path)}).to_json())
    assert "hunter2" not in told
    assert str(path) in told


def test_a_packed_line_without_end_is_left_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(20):
            file.write(b" " * 2**20)
    error = refusal("jsonl", {"train": str(path)})
    assert "line 1 is longer than 16 MiB" in error.detail


def test_a_packed_file_that_unpacks_to_hundreds_of_times_its_size_is_left_half_way(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    line = json.dumps({"instruction": " " * 1000, "output": "a"}).encode() + b"\n"
    with gzip.open(path, "wb") as file:
        for _ in range(40):
            file.write(line * 1000)
    assert "unpacks to more than 200 times its size" in refusal("jsonl", {"train": str(path)}).detail


@pytest.mark.parametrize(("name", "reason"), [("a.jsonl", "line 1 is longer"), ("a.json", "holds more than 128 MiB")])
def test_a_giant_on_one_line_is_not_read_to_its_end(name: str, reason: str, tmp_path: Path) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate(10 * untrusted_files.GIB)  # sparse: takes no disk
    assert reason in refusal("codealpaca", {"path": str(tmp_path / name)}).detail


def test_a_file_larger_than_any_that_is_read_is_not_opened(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("wb") as file:
        file.truncate(17 * untrusted_files.GIB)
    assert "is larger than the 16 GiB that are read" in refusal("jsonl", {"train": str(tmp_path / "a.jsonl")}).detail


def test_outside_the_roots_all_paths_give_the_same_answer(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "there.jsonl").write_text('{"instruction": "a", "output": "b"}\n' * 20)
    (tmp_path / "root" / "link.jsonl").symlink_to(tmp_path / "there.jsonl")
    with untrusted_files.allowed_roots(untrusted_files.Readable((tmp_path / "root",))):
        answers = {
            refusal(name, DATASETS[name](str(path)), split).detail.replace(str(path), "PATH")
            for path in (tmp_path / "there.jsonl", tmp_path / "none.jsonl", tmp_path / "root" / ".." / "there.jsonl")
            for name in ("jsonl", "natural_instructions")
            for split in ("train",)
        }
        assert len({answer.partition(": ")[2] for answer in answers}) == 1
        assert all(untrusted_files.SETTING in answer for answer in answers)
        assert untrusted_files.SETTING in refusal("jsonl", {"train": str(tmp_path / "root" / "link.jsonl")}).detail


def test_under_a_root_a_file_is_read_links_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.jsonl").write_text(
        "".join(f'{{"instruction": "a", "output": "{number}"}}\n' for number in range(20))
    )
    (tmp_path / "link").symlink_to(tmp_path / "root")
    options = {"name": "jsonl", "train": str(tmp_path / "link" / "a.jsonl")}
    with untrusted_files.allowed_roots(untrusted_files.Readable((tmp_path / "link",))):
        assert len(catalog.dataset(PluginChoice.model_validate(options)).train()) == 18


def test_paths_that_are_none_are_refused_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for path in (str(tmp_path / "circle"), "a\0b", str(tmp_path / ("x" * 300))):
        refusal("jsonl", {"train": path})
        with untrusted_files.allowed_roots(untrusted_files.Readable((tmp_path,))):
            refusal("jsonl", {"train": path})
