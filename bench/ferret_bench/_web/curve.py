"""Time until the first curve is drawn, after an experiment's address is opened."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from playwright.sync_api import Browser

from ferret_api.http.dashboard import ASSETS
from ferret_bench._api.alone import Api
from ferret_bench._web import browser as chromium
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.tables import Experiment, Metric, Round

METRICS = {"eval_loss": 2.0, "train_loss": 2.1, "rouge_l": 30.0, "bytes_up": 40_000.0, "bytes_down": 60_000.0}
WATCH = """window.firstCurve = new Promise((resolve) => {
  new MutationObserver((_, observer) => {
    if (document.querySelector('[data-points]:not([data-points="0"]) canvas') === null) return
    observer.disconnect()
    requestAnimationFrame(() => setTimeout(() => { resolve(performance.now()) }))
  }).observe(document, { childList: true, subtree: true, attributes: true })
})"""


def measured_rounds(api: Api, rounds: int) -> None:
    """Sets the experiment to running, with ``rounds`` committed rounds."""
    begin = datetime.now(UTC) - timedelta(minutes=rounds)
    with api.database.begin() as s:
        experiment = s.get_one(Experiment, api.experiment)
        experiment.state, experiment.started_at = ExperimentState.RUNNING, begin
        experiment.rounds, experiment.round = rounds + 1, rounds
        for number in range(1, rounds + 1):
            times = [begin + timedelta(minutes=number)] * 2
            s.add(
                Round(
                    experiment_id=api.experiment,
                    number=number,
                    state=RoundState.COMMITTED,
                    base_digest="0" * 64,
                    opened_at=times[0],
                    deadline_at=times[0],
                    committed_at=times[1],
                    bytes_up=40_000,
                )
            )
            s.add_all(
                Metric(experiment_id=api.experiment, name=name, round=number, value=value * (1 + 1 / number))
                for name, value in METRICS.items()
            )


def first_curve_seconds(browser: Browser, api: Api) -> float:
    """Returns the seconds with an empty browser cache."""
    with chromium.signed_in(browser, api) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(chromium.experiment(api), wait_until="commit")
        return float(page.evaluate("window.firstCurve")) / 1000


def scripts_loaded(browser: Browser, api: Api) -> set[str]:
    """Returns the names of the loaded scripts when the first curve is drawn."""
    with chromium.signed_in(browser, api) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(chromium.experiment(api))
        page.evaluate("window.firstCurve")
        addresses: list[str] = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
        places = (address.rpartition(f"/{ASSETS}/") for address in addresses)
        return {name for _, found, name in places if found and name.endswith(".js")}
