"""The base model's weights from the site's own disk or the hub, in place of a download."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec
from ferret_sdk import Participant
from ferret_sdk.http.transport import Traffic
from ferret_sdk.service import base_model_weights
from ferret_sdk.service.progress import Stage
from tests.ferret_core.conftest import COMMIT, _hub
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "participant"


@pytest.fixture
def join(api, worker, service, toy_spec, toy_data, home):
    """Takes part in an experiment with weights of the site's own: the run, the totals and the bytes downloaded."""

    def do(base, **changes):
        run = service.submit(toy_spec("ferret", rounds=1, participants={"edge": 1}, **changes))
        site = Participant.enrol(api.url, run.create_code().code, "clinic", home, base=base)
        downloads = []
        site.run(toy_data[0], on_progress=lambda progress: downloads.append(progress))
        total = [progress.total for progress in downloads if progress.stage == Stage.DOWNLOAD]
        return run.refresh(), site.totals, max(total, default=0)

    return do


def flipped(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_without_a_folder_every_byte_of_the_base_model_is_counted(join):
    run, totals, downloaded = join(None)
    assert downloaded == sum(file.size for file in run.checkpoint(0))
    assert totals.bytes_down > downloaded


def test_weights_in_a_folder_are_used_where_they_are(join, home, tiny_model_dir):
    run, totals, downloaded = join(tiny_model_dir)
    assert run.state == "completed"
    assert downloaded == sum(file.size for file in run.checkpoint(0) if not base_model_weights.holds_weights(file.name))
    assert totals.bytes_down < sum(
        file.size for file in run.checkpoint(0) if base_model_weights.holds_weights(file.name)
    )
    assert not list(home.rglob("*.safetensors"))
    assert not list(home.rglob(".joined-*"))


def test_weights_with_one_changed_byte_are_refused_with_their_digests(join, tmp_path, tiny_model_dir):
    folder = tmp_path / "base"
    shutil.copytree(tiny_model_dir, folder)
    flipped(folder / "model.safetensors", -1000)
    with refused("model.invalid", "model.safetensors ("):
        join(folder)


@pytest.mark.slow
def test_a_copy_of_the_servers_checkpoint_is_compared_file_by_file(join, service, toy_spec, tmp_path, home):
    first, *_ = join(None)
    copy = first.export(tmp_path / "base", 0)
    shutil.rmtree(home)
    assert join(copy)[0].state == "completed"
    announced = next(file.digest for file in first.checkpoint(0) if file.name == "model.safetensors")
    flipped(copy / "model.safetensors", -1000)
    with pytest.raises(FerretError, match=rf"model\.safetensors has digest [0-9a-f]{{64}}, .* has {announced}"):
        join(copy)


def test_a_folder_without_weights_is_refused(tmp_path):
    with refused("model.invalid", "holds no .safetensors weights"):
        base_model_weights.of_site(tmp_path, ModelSpec(source="a/b"), Traffic())


def test_the_hub_is_not_asked_for_a_model_without_a_revision(caplog):
    assert base_model_weights.of_site("hub", ModelSpec(source="/somewhere"), Traffic()) is None
    assert "come from the server" in caplog.text


@pytest.mark.heavy
@pytest.mark.parametrize("names", [["model.safetensors"], ["a.safetensors", "b.safetensors"], []])
def test_weights_come_from_the_hubs_revision_and_are_counted_once(names, tmp_path):
    prefix = f"/org/model/resolve/{COMMIT}/"
    files = {f"{prefix}{name}": name.encode() * 100 for name in names}
    if len(names) > 1:
        index = str({"weight_map": {"x": names[0], "y": names[1]}}).replace("'", '"')
        files[f"{prefix}model.safetensors.index.json"] = index.encode()
    program = (
        "from ferret_sdk.service import base_model_weights\n"
        "from ferret_sdk.http.transport import Traffic; t = Traffic()\n"
        "from ferret_core.protocol.spec import ModelSpec\n"
        f"spec = ModelSpec(source='org/model', revision='{COMMIT}')\n"
        "for _ in range(2): folder = base_model_weights.of_site('hub', spec, t)\n"
        "print(folder and sorted(path.name for path in folder.iterdir()), t.down)"
    )
    with _hub(files) as endpoint:
        environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
        command = [sys.executable, "-c", program]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    expected = sorted(path.removeprefix(prefix) for path in files) or None
    assert said.stdout.strip() == f"{expected} {sum(map(len, files.values()))}"


def test_a_link_that_the_disk_refuses_becomes_a_copy(tmp_path, monkeypatch):
    source = tmp_path / "weights"
    source.write_bytes(b"w")
    for name in ("link", "symlink"):
        monkeypatch.setattr(os, name, _refuse)
    own, server = tmp_path / "own", tmp_path / "server"
    for folder in (own, server):
        folder.mkdir()
    (own / "model.safetensors").write_bytes(b"w")
    (server / "config.json").write_bytes(b"{}")
    with base_model_weights.joined(own, server) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert not folder.exists()


def _refuse(*arguments):
    raise OSError("not on this disk")
