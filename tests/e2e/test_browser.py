"""A person's view: the printed address, opened in Chromium while an experiment runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.spec import ExperimentSpec

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py


def points(page: Page, chart: str) -> int:
    return int(page.get_by_test_id(f"line-{chart}").get_attribute("data-points") or 0)


def choose(page: Page, tab: str) -> None:
    page.get_by_role("tab", name=tab).click()
    expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()


def test_a_curve_grows_while_one_watches(page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]) -> None:
    run = served.service.submit(toy_spec(name="watched", rounds=10))
    page.goto(served.address)
    page.get_by_test_id("experiment-row").filter(has_text="watched").first.get_by_role("link").click()
    expect(page.get_by_test_id("line-eval_loss")).to_be_attached(timeout=60_000)
    expect(page.get_by_test_id("line-eval_loss")).not_to_have_attribute("data-points", "0", timeout=60_000)
    assert "token" not in page.url
    seen = points(page, "eval_loss")
    expect(page.get_by_test_id("experiment-state")).to_have_text("completed", timeout=120_000)
    expect(page.get_by_test_id("live-badge")).to_have_text("finished")
    expect(page.get_by_test_id("line-eval_loss")).to_have_attribute("data-points", "11")
    assert seen < 11
    assert (points(page, "train_loss"), points(page, "rouge_l"), points(page, "bytes_up")) == (10, 11, 10)
    expect(page.get_by_test_id("upload-ratio")).to_contain_text("less than sending all weights")
    choose(page, "Rounds & participants")
    expect(page.get_by_test_id("rounds-table").get_by_text("committed")).to_have_count(10)
    choose(page, "Models")
    with page.expect_download() as download:
        page.get_by_test_id("checkpoint-download").filter(has_text="model.safetensors").click()
    files = {file.name: file for file in run.artifacts() if file.round == 10}
    assert download.value.path().stat().st_size == files["model.safetensors"].size
    choose(page, "Log")
    expect(page.get_by_test_id("events").get_by_text("round committed")).to_have_count(10)
    choose(page, "Configuration")
    expect(page.get_by_label("specification", exact=True)).to_contain_text("rounds = 10")
    assert page.url.endswith("?tab=configuration")


def test_charts_are_read_by_keys_zoomed_and_saved(
    page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]
) -> None:
    run = served.service.submit(toy_spec(name="read", rounds=4))
    page.goto(f"{served.address.replace('/#', f'/experiments/{run.id}?x=bytes&smooth=light#')}")
    expect(page.get_by_test_id("experiment-state")).to_have_text("completed", timeout=120_000)
    expect(page.get_by_test_id("line-eval_loss")).to_have_attribute("data-points", "5")
    loss = page.get_by_test_id("chart-loss")
    loss.get_by_role("slider").focus()
    for key, round_ in (("Home", 0), ("ArrowRight", 1), ("End", 4), ("ArrowLeft", 3)):
        page.keyboard.press(key)
        expect(loss.get_by_role("slider")).to_have_attribute("aria-valuenow", str(round_))
    expect(page.get_by_test_id("chart-rouge_l").get_by_text("round 3", exact=True)).to_be_visible()  # cursors are one

    box = loss.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 50, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Reset zoom")).to_be_visible()
    loss.locator(".u-over").dblclick()
    expect(page.get_by_role("button", name="Reset zoom")).to_have_count(0)

    with page.expect_download() as values:
        loss.get_by_role("button", name="Loss as CSV").click()
    lines = values.value.path().read_text().splitlines()
    assert (lines[0], len(lines)) == ("round,bytes_up_so_far,train_loss,eval_loss", 6)
    with page.expect_download() as picture:
        loss.get_by_role("button", name="Loss as PNG").click()
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")


def test_an_experiment_is_led_by_hand(page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]) -> None:
    """It waits for a participant that never comes: paused, resumed, cloned; the clone is cancelled and deleted."""
    run = served.service.submit(toy_spec(name="by hand", participants={"edge": 1}))
    page.set_default_timeout(60_000)
    page.goto(f"{served.address.replace('/#', f'/experiments/{run.id}#')}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("paused")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("paused")).to_be_hidden(timeout=60_000)
    assert run.refresh().state == "running"

    page.get_by_role("link", name="Clone").click()
    page.get_by_label("Name", exact=True).fill("by hand, again")
    page.get_by_label("seed", exact=True).fill("9")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="by hand, again")).to_be_visible(timeout=60_000)
    clone = served.service.experiment(page.url.rsplit("/", 1)[1])
    assert (clone.experiment.cloned_from, clone.experiment.spec["seed"]) == (run.id, 9)

    for action, confirmed, state in (("Cancel", "Cancel it", "cancelled"), ("Delete", "Delete", None)):
        page.get_by_test_id("more-menu").click()
        page.get_by_role("button", name=action, exact=True).click()
        page.locator("dialog[open]").get_by_role("button", name=confirmed, exact=True).click()
        if state is not None:
            expect(page.get_by_test_id("experiment-state")).to_have_text(state, timeout=60_000)
    page.wait_for_url(f"{served.service.url}/")
    assert clone.id not in [experiment.id for experiment in served.service.experiments()]
    run.cancel()


def test_a_name_tags_and_notes_are_edited_where_they_are_read(
    page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec], complaints: list[str]
) -> None:
    complaints.append("412")
    run = served.service.submit(toy_spec(name="unnamed", participants={"edge": 1}))
    page.set_default_timeout(60_000)
    page.goto(f"{served.address.replace('/#', f'/experiments/{run.id}#')}")
    page.get_by_role("button", name="Edit name of unnamed").click()
    page.get_by_role("textbox", name="name of unnamed").fill("named")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="named", exact=True)).to_be_visible()

    dialog = page.get_by_role("dialog", name="Tags, notes and priority of")
    page.get_by_role("button", name="Tags, notes").click()
    dialog.get_by_label("Tags").fill("hearts, K search")
    dialog.get_by_label("Notes").fill("Twice the coordinates.\nSecond line.")
    dialog.get_by_label("Priority").fill("3")
    dialog.get_by_role("button", name="Save").click()
    remarks = page.get_by_test_id("remarks")
    expect(remarks).to_contain_text("Twice the coordinates.")
    expect(remarks).to_contain_text("priority 3")
    told = run.refresh().experiment
    assert (told.name, told.tags, told.notes, told.priority) == (
        "named",
        ["hearts", "K search"],
        "Twice the coordinates.\nSecond line.",
        3,
    )

    page.get_by_role("button", name="Tags, notes").click()
    run.edit(notes="Somebody else's.")
    dialog.get_by_label("Notes").fill("Mine.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_contain_text("edited")
    assert run.refresh().experiment.notes == "Somebody else's."
    dialog.get_by_role("button", name="Close").click()
    remarks.get_by_role("link", name="hearts").click()
    expect(page.get_by_test_id("experiment-row")).to_have_count(1)
    run.cancel()


def test_two_runs_are_compared(page: Page, served: Served, toy_spec: Callable[..., ExperimentSpec]) -> None:
    """Ticked in the list; one line, point and column each; as mean and deviation once they are grouped by seed."""
    runs = [served.service.submit(toy_spec(name=f"seed {seed}", seed=seed)) for seed in (5, 6)]
    for run in runs:
        run.wait()
    page.goto(served.address)
    for run in runs:
        page.get_by_role("checkbox", name=f"Select {run.experiment.name}", exact=True).check()
    page.get_by_role("link", name="Compare 2").click()
    expect(page.get_by_test_id("compare-run")).to_have_count(2)
    expect(page.get_by_test_id("compare-overlay")).to_have_attribute("data-points", "8")  # rounds 0 to 3, twice
    expect(page.get_by_test_id("compare-frontier")).to_have_attribute("data-points", "2")
    expect(page.get_by_test_id("compare-field")).to_have_text(["seed56"])

    page.get_by_role("button", name="pin seed 5 as the baseline").click()
    expect(page.locator("[data-differs=true]")).to_have_text("6")
    page.get_by_label("mean ± sd over seeds").check()
    expect(page.get_by_test_id("compare-run")).to_contain_text("(2 seeds)")
    expect(page.get_by_test_id("compare-overlay")).to_have_attribute("data-points", "4")
    page.reload()
    expect(page.get_by_test_id("compare-run")).to_contain_text("(2 seeds)")
    assert f"ids={','.join(run.id for run in runs)}&baseline={runs[0].id}&groups=seeds" in page.url
