"""What is given to Prometheus and Grafana agrees with what a running API says."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_db.engine import assignments
from ferret_db.tables import Experiment

DEPLOY = Path(__file__).parents[2] / "deploy"
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/ferret.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
TARGETS = [target for panel in PANELS for target in panel["targets"]]
WINDOW = re.compile(r"\[[^]]+\]")


@pytest.fixture
def live(make_settings: Callable[..., ApiSettings], serve: Callable[[ApiSettings], Any]) -> Any:
    """A real server that has something to say of every figure."""
    live = serve(make_settings())
    site = live.site
    experiment_id = site.running()
    site.committed(experiment_id)
    (assignment_id,) = site.open_round(experiment_id, simulated=["client-001"], number=2)
    site.expire_all(Experiment, "created_at", 3600)
    with site.database.begin() as s:
        assignments.refuse(s, assignment_id, FerretError("round.closed", "too late"))
    return live


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"ferret_\w+", expression))


def labels_in(target: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The labels that the target's expression groups by or selects, or its legend names, each with its metric."""
    expression = WINDOW.sub("", target["expr"])
    (metric,) = metrics_in(expression)
    grouped = [label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")]
    selected = [
        label for group in re.findall(r"\{([^}]*)\}", expression) for label in re.findall(r"(\w+)\s*[=!]", group)
    ]
    shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    assert set(shown) <= set(grouped), "a legend can name what is grouped by"
    yield from ((metric, label) for label in {*grouped, *selected})


def test_the_dashboard_uses_metrics_and_labels_that_the_server_has(live: Any) -> None:
    text = live.admin.get("/metrics").text
    labels: dict[str, set[str]] = defaultdict(set)
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels[sample.name] |= set(sample.labels)
    for target in TARGETS:
        for metric, label in labels_in(target):
            assert label in labels[metric], f"{metric} has no label {label}: {target['expr']}"
    families = {re.sub("_(bucket|total)$", "", name) for target in TARGETS for name in metrics_in(target["expr"])}
    offered = {family.name.removesuffix("_created") for family in text_string_to_metric_families(text)}
    assert families == offered, "every figure is on the dashboard"


def test_every_panel_says_what_it_shows_from_the_source_that_is_chosen() -> None:
    assert all(panel["description"] and panel["title"] for panel in PANELS)
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    sources = [each["datasource"] for each in [*PANELS, *TARGETS]]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    assert [variable["name"] for variable in BOARD["templating"]["list"]] == ["datasource"]


def test_prometheus_is_told_how_to_ask(live: Any) -> None:
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    (target,) = [target for group in job["static_configs"] for target in group["targets"]]
    assert target.endswith(f":{ApiSettings.model_fields['port'].default}")
    headers = {"Authorization": f"{job['authorization']['type']} {live.admin.headers['Authorization'].split()[1]}"}
    answer = httpx.get(f"{live.url}{job['metrics_path']}", headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"].split(";")[0]) == (200, "text/plain")
    assert httpx.get(f"{live.url}{job['metrics_path']}").status_code == 401
