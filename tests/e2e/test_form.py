"""An experiment written in the browser: the form, what stands beside it, and what it prints for elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from ferret_core.protocol.spec import ExperimentSpec

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py
PATIENCE = 60_000


@pytest.fixture
def document(toy_spec: Callable[..., ExperimentSpec]) -> dict[str, Any]:
    return toy_spec(name="by form").model_dump(mode="json")


def field(page: Page, path: str) -> Locator:
    return page.locator(f"[id='field-{path}']")


def fill(page: Page, document: dict[str, Any]) -> None:
    """Opens the form with its advanced part, and fills the fields that have no default."""
    page.goto(f"{page.url.partition('?')[0]}?open=advanced,dataset,participants,algorithm")
    field(page, "name").fill(document["name"])
    field(page, "model.source").fill(document["model"]["source"])
    field(page, "dataset.name").select_option(document["dataset"]["name"])
    for option, value in document["dataset"].items():
        if option != "name" and value is not None:
            field(page, f"dataset.{option}").fill(str(value))
    field(page, "participants.simulated").fill("3")


def snippet(page: Page, name: str) -> str:
    page.get_by_test_id("snippets").get_by_role("button", name=name, exact=True).click()
    label = {"Command": "command"}.get(name, name)
    return page.get_by_test_id("snippets").get_by_label(label, exact=True).inner_text()


def test_an_experiment_is_submitted_by_the_form(signed_in: Page, served: Served, document: dict[str, Any]) -> None:
    page = signed_in
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name="New experiment")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    summary = page.get_by_test_id("error-summary")
    expect(summary).to_be_focused()
    summary.get_by_role("link", name="model.source").click()
    expect(field(page, "model.source")).to_be_focused()

    fill(page, document)
    field(page, "rounds").fill("0")
    expect(page.locator("[id='field-rounds-wrong']")).to_contain_text("must be at least 1")
    expect(field(page, "rounds")).to_have_attribute("aria-invalid", "true")
    field(page, "rounds").fill("2")
    expect(summary).to_have_count(0)
    expect(page.get_by_test_id("plan")).to_contain_text("Expected noise")
    page.reload()
    expect(field(page, "name")).to_have_value("by form")
    expect(field(page, "rounds")).to_have_value("2")

    field(page, "name").press("Control+Enter")
    expect(page.get_by_role("heading", name="by form")).to_be_visible(timeout=PATIENCE)
    run = served.service.experiment(page.url.rsplit("/", 1)[1].partition("?")[0])
    assert (run.experiment.spec["rounds"], run.experiment.spec["participants"]["simulated"]) == (2, 3)
    page.goto(f"{served.url}/new")
    expect(field(page, "name")).to_have_value("")
    run.wait(timeout=120)


@pytest.mark.slow
def test_what_it_prints_runs_as_it_stands(
    signed_in: Page, served: Served, document: dict[str, Any], tmp_path: Path
) -> None:
    page = signed_in
    page.goto(f"{served.url}/new")
    fill(page, {**document, "name": "it's printed"})
    field(page, "participants.edge").fill("1")
    field(page, "algorithm.local.optimizer").select_option("adam")
    field(page, "algorithm.local.options").fill('{"betas": [0.9, 0.95]}')
    expect(page.get_by_test_id("plan")).to_contain_text("Coordinates, K")
    binaries = Path(sys.executable).parent
    environment = {**os.environ, "FERRET_HOME": str(served.home), "PATH": f"{binaries}:{os.environ['PATH']}"}

    def run(*command: str) -> dict[str, Any]:
        ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        made = served.service.experiment(ended.stdout.strip())
        made.cancel()
        spec = made.experiment.spec
        del spec["prompt"]["template"], spec["algorithm"]["local"]["precision"]  # settled if it began to run before
        return spec

    by_command = run("bash", "-c", snippet(page, "Command"))
    by_python = run(sys.executable, "-c", snippet(page, "Python"))
    (tmp_path / "printed.toml").write_text(snippet(page, "TOML"))
    by_file = run("ferret", "submit", "printed.toml")
    assert by_command == by_python == by_file
    assert by_command["name"] == "it's printed"
    assert by_command["algorithm"]["local"]["options"] == {"betas": [0.9, 0.95]}

    text = (tmp_path / "printed.toml").read_text()
    page.get_by_role("button", name="Start over").click()
    expect(field(page, "name")).to_have_value("")
    page.get_by_role("button", name="Import TOML").click()
    form = page.get_by_role("dialog", name="Import a specification")
    form.get_by_label("TOML").fill(text)
    form.get_by_role("button", name="Fill the form").click()
    expect(field(page, "name")).to_have_value("it's printed")
    assert snippet(page, "TOML") == text


def test_what_is_typed_while_the_server_works_is_kept(
    signed_in: Page, served: Served, document: dict[str, Any]
) -> None:
    page = signed_in
    page.goto(f"{served.url}/new")
    fill(page, document)
    waiting: list[Route] = []
    page.route("**/experiments:revise", lambda route: waiting.append(route))
    field(page, "algorithm.local.optimizer").select_option("adam")
    field(page, "algorithm.local.options").fill('{"betas": [0.9, 0.95]}')
    field(page, "rounds").fill("7")
    waiting[0].continue_()
    expect(field(page, "algorithm.local.optimizer")).to_have_value("adam")
    expect(field(page, "algorithm.local.options")).to_have_value('{"betas": [0.9, 0.95]}')
    expect(field(page, "rounds")).to_have_value("7")


def test_a_clone_by_another_algorithm_keeps_the_training_and_shows_what_changed(
    signed_in: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]
) -> None:
    page = signed_in
    local = {"optimizer": "adam", "learning_rate": 0.003}
    algorithm = {"name": "ferret", "K": 1000, "local": local}
    original = served.service.submit(toy_spec(name="a parent", participants={"edge": 1}, algorithm=algorithm))
    page.goto(f"{served.url}/experiments/{original.id}")
    page.get_by_role("link", name="Clone").click()
    expect(field(page, "algorithm.local.learning_rate")).to_have_value("0.003")
    changes = page.get_by_test_id("changes")
    expect(changes).to_contain_text("There are no changes yet")
    field(page, "algorithm.name").select_option("fedavg")
    expect(page.get_by_text("Dropped by this change: algorithm.K = 1000")).to_be_visible()
    expect(field(page, "algorithm.local.learning_rate")).to_have_value("0.003")
    expect(changes.get_by_role("row", name="algorithm.name ferret fedavg")).to_be_visible()
    expect(changes.get_by_role("row", name="algorithm.K 1000 –")).to_be_visible()
    expect(changes).not_to_contain_text("learning_rate")
    command = snippet(page, "Command").replace("\\\n", " ").split()
    assert command == ["ferret", "experiment", "clone", original.id, "--set", "'algorithm.name=\"fedavg\"'"]
    field(page, "name").fill("a child")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="a child")).to_be_visible(timeout=PATIENCE)
    clone = served.service.experiment(page.url.rsplit("/", 1)[1].partition("?")[0])
    assert clone.experiment.cloned_from == original.id
    assert clone.experiment.spec["algorithm"]["local"]["learning_rate"] == 0.003
    clone.cancel()
