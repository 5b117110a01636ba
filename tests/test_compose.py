"""docker-compose.yml against the compose specification's schema, the settings and the command line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ferret_api.settings import ApiSettings
from ferret_cli.main import app
from ferret_worker.settings import WorkerSettings
from scripts import lock

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}
SETTINGS = {f"FERRET_{name.upper()}" for name in (*ApiSettings.model_fields, *WorkerSettings.model_fields)}


@pytest.mark.heavy
def test_it_follows_the_compose_specification() -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yml",
    ]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("name", OURS)
def test_every_variable_is_a_setting(name: str) -> None:
    assert set(OURS[name]["environment"]) <= SETTINGS


@pytest.mark.parametrize("name", OURS)
def test_every_command_is_one_of_ours(name: str) -> None:
    import typer.main

    commands = typer.main.get_command(app).commands  # pyright: ignore[reportAttributeAccessIssue]
    assert OURS[name]["command"][0] in commands


def test_there_is_a_process_for_every_part() -> None:
    commands = [tuple(service["command"]) for service in OURS.values()]
    assert {("api",), ("migrate",), ("worker", "train"), ("worker", "aggregate")} == set(commands)
    assert {"postgres", "redis"} < set(COMPOSE["services"])


def test_ports_and_health_checks_agree_with_the_settings() -> None:
    api = OURS["api"]
    port = int(api["environment"]["FERRET_PORT"])
    assert port == ApiSettings.model_fields["port"].default
    assert [entry.rsplit(":", 2)[-2:] for entry in api["ports"]] == [[str(port), str(port)]]
    assert f":{port}/readyz" in api["healthcheck"]["test"][-1]


def test_nothing_starts_before_what_it_needs() -> None:
    for name, service in COMPOSE["services"].items():
        for needed, how in service.get("depends_on", {}).items():
            condition = how["condition"]
            assert needed in COMPOSE["services"], f"{name} needs {needed}"
            if condition == "service_healthy":
                assert "healthcheck" in COMPOSE["services"][needed]
            else:
                assert (condition, COMPOSE["services"][needed]["restart"]) == ("service_completed_successfully", "no")


def test_no_secret_stands_in_the_file_and_every_volume_is_declared() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert re.findall(r"(?:PASSWORD|TOKEN): (?!\$\{)", text) == []
    mounted = {volume.split(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert mounted == set(COMPOSE["volumes"])


def test_the_image_copies_every_package_it_installs() -> None:
    copied = set(re.findall(r"^COPY (\w+) \./", DOCKERFILE, re.MULTILINE))
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= copied


def test_the_image_installs_from_the_lock_and_copies_all_that_this_reads() -> None:
    installs = re.findall(r"^RUN (?:\w+=\w+ )*(.*(?:pip install|scripts\.setup).*)$", DOCKERFILE, re.MULTILINE)
    assert installs == ['python -m scripts.setup --service --venv /opt/ferret --torch "$TORCH"']
    copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()}
    for name in [lock.RUNTIME, *lock.PROJECTS]:
        assert copied & {name, *map(str, Path(name).parents)}, name
