"""What the SDK reads is what ``openapi.json`` says that the server sends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ferret_sdk.service import schemas

SERVER = json.loads((Path(__file__).parents[3] / "openapi.json").read_text())["components"]["schemas"]
MODELS = [
    model
    for model in vars(schemas).values()
    if isinstance(model, type) and issubclass(model, schemas.Document) and model is not schemas.Document
]
NAMES = {
    "Audited": "AuditEntry",
    "CodeInfo": "EnrolmentInfo",
    "ContributionInfo": "Contribution",
    "Ended": "AuditHead",
    "EnrolmentCode": "Enrolment",
    "LedgerItem": "LedgerEntry",
    "Metrics": "MetricSeriesList",
    "NewAlert": "CreatedAlert",
    "NewUserToken": "CreatedToken",
    "ParticipantInfo": "Participant",
    "Point": "MetricPoint",
    "Poll": "NextAssignment",
    "Series": "MetricSeries",
    "Summary": "MetricSummary",
    "UserToken": "Token",
}
Json = dict[str, Any]


def problems(read: Json, sent: Json, ours: Json, theirs: Json, at: str = "") -> list[str]:
    """Where a value of the schema ``sent`` is none of ``read``; ``ours`` and ``theirs`` hold what they refer to."""
    read, sent = _resolved(read, ours), _resolved(sent, theirs)
    if "anyOf" in sent:
        return [found for choice in sent["anyOf"] for found in problems(read, choice, ours, theirs, at)]
    if "anyOf" in read:
        found = [problems(choice, sent, ours, theirs, at) for choice in read["anyOf"]]
        return min(found, key=len)
    if "type" not in read and "enum" not in read:
        return []
    if read.get("type") != sent.get("type") and (read.get("type"), sent.get("type")) != ("number", "integer"):
        return [f"{at}: reads {read.get('type')}, the server sends {sent.get('type')}"]
    if "enum" in read and not set(sent.get("enum", ["any"])) <= set(read["enum"]):
        return [f"{at}: reads {read['enum']}, the server sends {sent.get('enum', 'any text')}"]
    if "format" in read and read["format"] != sent.get("format"):
        return [f"{at}: reads a {read['format']}, the server sends {sent.get('format', 'any text')}"]
    if read["type"] == "array":
        return problems(read.get("items", {}), sent.get("items", {}), ours, theirs, f"{at}[]")
    return _of_members(read, sent, ours, theirs, at) if read["type"] == "object" else []


def _of_members(read: Json, sent: Json, ours: Json, theirs: Json, at: str) -> list[str]:
    members = sent.get("properties", {})
    missing = [f"{at}.{name}: the server sends no such member" for name in read.get("properties", {}).keys() - members]
    unsure = set(read.get("required", [])) & members.keys() - set(sent.get("required", []))
    found = [*missing, *(f"{at}.{name}: is required, the server may leave it out" for name in unsure)]
    for name in read.get("properties", {}).keys() & members:
        found += problems(read["properties"][name], members[name], ours, theirs, f"{at}.{name}")
    if isinstance(read.get("additionalProperties"), dict):
        found += problems(read["additionalProperties"], sent["additionalProperties"], ours, theirs, f"{at}.*")
    return found


def _resolved(schema: Json, definitions: Json) -> Json:
    return definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def compared(model: type[BaseModel], sent: Json) -> list[str]:
    read = model.model_json_schema()
    return sorted(problems(read, sent, read.get("$defs", {}), SERVER, model.__name__))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_server_sends_all_that_the_sdk_reads_with_its_types(model: type[BaseModel]) -> None:
    assert compared(model, SERVER[NAMES.get(model.__name__, model.__name__)]) == []


def test_every_way_to_drift_apart_is_found() -> None:
    sent = json.loads(json.dumps(SERVER["Experiment"]))
    sent["required"].remove("id")
    del sent["properties"]["algorithm"]
    sent["properties"] |= {
        "round": {"type": "number"},
        "name": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "created_at": {"type": "string"},
        "state": {"type": "string", "enum": ["running", "asleep"]},
        "metrics": {"type": "object", "additionalProperties": {"type": "number"}},
    }
    states = [*SERVER["ExperimentState"]["enum"]]
    assert compared(schemas.Experiment, sent) == [
        "Experiment.algorithm: the server sends no such member",
        "Experiment.created_at: reads a date-time, the server sends any text",
        "Experiment.id: is required, the server may leave it out",
        "Experiment.metrics.*: reads object, the server sends number",
        "Experiment.name: reads string, the server sends null",
        "Experiment.round: reads integer, the server sends number",
        f"Experiment.state: reads {states}, the server sends ['running', 'asleep']",
    ]
