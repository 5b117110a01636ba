from __future__ import annotations

import json
import shutil
import socket
from importlib.metadata import version

import pytest

from ferret_cli.doctor import installation, software
from ferret_runtime.settings import ServiceSettings


def checks(done):
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.slow
def test_all_is_well(ferret, free_port):
    done = ferret("doctor", "--json", FERRET_PORT=str(free_port))
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["ok"] is True
    assert {"python", "training packages", "broker", "database", "disk", "admin token", "server"} <= set(checks(done))
    assert checks(done)["training packages"]["detail"].startswith("torch ")
    build = "CPU" if "+cpu" in version("torch") else "CUDA 13"
    assert checks(done)["torch build"]["detail"].startswith(build)
    assert checks(done)["torch build"]["detail"].endswith(f", triton {version('triton')}")


def test_what_is_wrong_comes_with_the_command_that_fixes_it(ferret, home, free_port):
    home.mkdir()
    (home / "admin.token").write_text("secret")
    (home / "admin.token").chmod(0o644)
    (home / "ferret.db").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = f"redis://127.0.0.1:{free_port}/0"
        done = ferret("doctor", "--json", FERRET_PORT=str(port), FERRET_BROKER_URL=broker)
    found = checks(done)
    assert done.returncode == 1
    assert found["admin token"]["fix"] == f"chmod 600 {home / 'admin.token'}"
    assert found["database"]["fix"] == "ferret migrate"
    assert str(port) in found["server"]["detail"]
    assert found["server"]["fix"].startswith("ferret serve --port ")
    assert str(free_port) in found["broker"]["detail"]
    assert [name for name, check in found.items() if check["ok"] is False] == [
        "broker",
        "database",
        "admin token",
        "server",
    ]


@pytest.mark.slow
def test_the_fix_for_the_database_works(ferret, home, free_port):
    home.mkdir()
    (home / "ferret.db").touch()
    done = ferret("migrate", "--json")
    assert done.returncode == 0, done.stderr
    revision = json.loads(done.stdout)["revision"]
    shown = ferret("doctor", FERRET_PORT=str(free_port))
    assert shown.returncode == 0
    assert f"at revision {revision}" in shown.stdout
    assert "fix it with" in shown.stdout
    assert "\x1b[" not in shown.stdout


@pytest.mark.parametrize("programs", [[], ["gcc"]])
@pytest.mark.parametrize("gpus", [0, 1])
def test_only_a_gpu_needs_a_compiler(programs, gpus, tmp_path, monkeypatch) -> None:
    import torch

    monkeypatch.delenv("CC", raising=False)
    for program in programs:
        shutil.copy("/bin/true", tmp_path / program)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "A GPU")
    assert software.gpu().detail == ("A GPU" if gpus else "none that torch can use; training runs on the CPU")
    found = software.compiler()
    assert found.ok is (True if programs else False if gpus else None)
    assert (found.fix is not None) is (found.ok is False)


@pytest.mark.slow
def test_a_ferret_of_another_folder_is_not_another_program(served, ferret) -> None:
    port = served.url.rpartition(":")[2]
    found = checks(ferret("doctor", "--json", "--port", port))["server"]
    assert f"a Ferret runs on port {port}" in found["detail"]
    assert "FERRET_HOME" in found["fix"]
    assert found["ok"] is None


@pytest.mark.heavy
def test_what_does_not_speak_http_is_no_ferret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert not installation.is_ferret(f"http://127.0.0.1:{listening.getsockname()[1]}")


def test_a_bucket_is_tried_out(bucket, tmp_path) -> None:
    url, options = bucket()
    settings = ServiceSettings(home=tmp_path, storage_url=f"{url}/ferret", s3_endpoint=options.endpoint)
    found = installation.bucket(settings)
    assert (found.ok, found.fix) == (True, None)
    assert f"{url}/ferret" in found.detail
    absent = installation.bucket(settings.model_copy(update={"storage_url": "s3://ferret-absent"}))
    assert absent.ok is False
    assert "no such bucket" in absent.detail
    assert "docs/operators/storage.md" in (absent.fix or "")
