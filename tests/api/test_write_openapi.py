"""The committed document is what the service does."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from ferret_api import write_openapi
from ferret_api.app import create_app
from ferret_api.http.errors import MEDIA_TYPE
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import PROBLEMS


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(ApiSettings()).openapi()


def operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_the_committed_document_is_up_to_date() -> None:
    assert write_openapi.main(["--check"]) == 0, "run `python -m ferret_api.write_openapi` and commit openapi.json"


def test_a_stale_document_is_noticed_and_rewritten(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(write_openapi, "FILE", tmp_path / "openapi.json")
    write_openapi.FILE.write_text("{}\n")
    assert write_openapi.main(["--check"]) == 1
    assert "python -m ferret_api.write_openapi" in capsys.readouterr().err
    assert write_openapi.main([]) == 0
    assert write_openapi.main(["--check"]) == 0


def test_operation_ids_are_plain_words_and_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert all(name.replace("_", "").isalpha() for name in ids)
    assert {"submit_experiment", "list_experiments", "upload_contribution"} <= set(ids)


def test_every_error_is_a_problem_document_with_known_codes(document: dict[str, Any]) -> None:
    for operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) < 400 or (operation["operationId"], status) == ("get_readiness", "503"):
                continue
            assert list(response["content"]) == [MEDIA_TYPE], (operation["operationId"], status)
            assert response["content"][MEDIA_TYPE]["schema"] == {"$ref": "#/components/schemas/Problem"}
            assert {PROBLEMS[code].status for code in response["x-problem-codes"]} == {int(status)}


def test_nothing_of_fastapis_own_errors_is_left(document: dict[str, Any]) -> None:
    assert "HTTPValidationError" not in json.dumps(document)
    assert {"Problem", "FieldError"} <= set(document["components"]["schemas"])


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    used = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert used <= set(schemas)


def test_binary_bodies_are_declared(document: dict[str, Any]) -> None:
    paths = document["paths"]
    experiment = "/api/v1/experiments/{experiment_id}"
    blob = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    assert paths[f"{experiment}/updates/{{round}}"]["get"]["responses"]["200"]["content"] == blob
    for status in ("200", "206"):
        download = paths[f"{experiment}/artifacts/{{artifact_id}}"]["get"]
        assert download["responses"][status]["content"] == blob
    upload = paths["/api/v1/participant/assignments/{assignment_id}/contribution"]["put"]
    assert upload["requestBody"] == {"required": True, "content": blob}


def test_answers_fit_their_schemas(site: Any, document: dict[str, Any]) -> None:
    experiment_id = site.running()
    inside = {"step": [0.1, 0.2], "weights": [1.0, 2.0]}
    site.committed(experiment_id, files=[site.store("config.json", b"{}")], inside=inside)
    site.open_round(experiment_id, simulated=["client-001"], number=2)
    parameters = {"experiment_id": experiment_id, "number": "1", "round": "1", "kind": "algorithms", "name": "ferret"}
    parameters |= {"user_id": "admin", "participant": "client-001", "project": "default"}
    checked: set[str] = set()
    for path, methods in document["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if "application/json" not in content or "participant/" in path:
            continue
        answer = site.admin.get(path.format(**parameters))
        schema = content["application/json"]["schema"] | {"components": document["components"]}
        jsonschema.validate(answer.json(), schema, format_checker=jsonschema.FormatChecker())
        checked.add(methods["get"]["operationId"])
    assert {"get_experiment", "get_metrics", "list_ledger", "get_receipt", "get_round_update"} <= checked


def test_the_service_hands_the_document_out(site: Any, document: dict[str, Any]) -> None:
    assert site.client().get("/api/v1/openapi.json").json() == document
