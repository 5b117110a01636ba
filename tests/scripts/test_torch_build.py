"""Which build of torch a machine gets."""

from __future__ import annotations

import pytest

from scripts import Refusal, torch_build


@pytest.mark.parametrize(
    ("asked", "platform", "driver", "offered", "build", "why"),
    [
        ("", "linux", True, True, "cuda", "driver"),
        ("", "linux", False, True, "cpu", "no NVIDIA driver"),
        (
            "",
            "linux",
            False,
            False,
            "cuda",
            "PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make setup TORCH=cpu",
        ),
        ("cpu", "linux", True, True, "cpu", "TORCH=cpu"),
        ("cuda", "linux", False, True, "cuda", "TORCH=cuda"),
        ("", "darwin", False, False, "cpu", "PyPI's build for darwin"),
        ("cpu", "darwin", False, False, "cpu", "PyPI's build for darwin"),
    ],
)
def test_the_build_and_the_reason(asked, platform, driver, offered, build, why) -> None:
    choice = torch_build.choose(asked, platform, driver, lambda: offered)
    assert choice.build == build
    assert why in choice.why


@pytest.mark.parametrize(
    ("asked", "platform", "message"),
    [
        ("gpu", "linux", "TORCH=gpu: must be cpu or cuda"),
        ("cpu", "linux", "name one: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu"),
        ("cuda", "darwin", "no CUDA build of torch for darwin"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_next_step(asked, platform, message) -> None:
    with pytest.raises(Refusal, match=message):
        torch_build.choose(asked, platform, driver=False, offers_small=lambda: False)


def test_no_index_is_asked_where_a_driver_is() -> None:
    torch_build.choose("", "linux", driver=True, offers_small=lambda: pytest.fail("asked an index"))


def test_a_driver_is_known_by_its_program(tmp_path, monkeypatch) -> None:
    (tmp_path / "nvidia-smi").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert torch_build.has_driver()
