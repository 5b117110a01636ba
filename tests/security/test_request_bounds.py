"""What one request may cost: bodies, error lists and stored reasons are bounded, whatever it holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError, FieldError, field_errors
from ferret_core.protocol.spec import ExperimentSpec
from tests.api.conftest import open_site

MANY = 80_000
JSON = {"Content-Type": "application/json"}


def keys(count: int) -> bytes:
    return json.dumps({f"{n}": 0 for n in range(count)}, separators=(",", ":")).encode()


def small(answer: Any, code: str) -> dict[str, Any]:
    assert len(answer.content) <= 10_000
    problem = answer.json()
    assert problem["code"] == code
    return problem


@pytest.mark.parametrize("path", ["session", "participants"])
def test_a_stranger_sends_at_most_eight_kilobytes(shared_site: Any, path: str) -> None:
    stranger = shared_site.client()
    small(stranger.post(f"/api/v1/{path}", content=keys(MANY), headers=JSON), "request.too_large")
    small(stranger.post(f"/api/v1/{path}", content=keys(1_200), headers=JSON), "request.too_large")
    problem = small(stranger.post(f"/api/v1/{path}", content=keys(500), headers=JSON), "request.invalid")
    assert len(problem["errors"]) == 20
    assert problem["errors_omitted"] >= 480
    assert problem["detail"].endswith(f"and {problem['errors_omitted']} more")


def test_a_specification_of_many_keys_is_refused_before_it_is_parsed(shared_site: Any) -> None:
    answer = shared_site.admin.post("/api/v1/experiments", content=keys(MANY), headers=JSON)
    assert "values" in small(answer, "request.too_large")["detail"]
    answer = shared_site.admin.post("/api/v1/experiments", content=keys(1_900), headers=JSON)
    assert small(answer, "spec.invalid")["errors_omitted"] >= 1_880


def test_a_long_value_is_told_in_short(shared_site: Any) -> None:
    body = {"name": "x" * 500_000, "rounds": ["y" * 100] * 1_000, "z" * 100_000: 1, "seed": "9" * 4_000}
    problem = small(shared_site.admin.post("/api/v1/experiments", json=body), "spec.invalid")
    assert all(len(str(error["value"])) <= 200 and len(error["field"]) <= 200 for error in problem["errors"])


@pytest.mark.parametrize("text", ["a," * 6_000, "[" * 900 + '"' * 99], ids=["commas", "brackets"])
def test_brackets_and_commas_in_a_text_do_not_count(shared_site: Any, text: str) -> None:
    experiment = shared_site.submit()
    body, edit = {"notes": text}, {"Content-Type": "application/merge-patch+json"}
    answer = shared_site.admin.patch(f"/api/v1/experiments/{experiment}", content=json.dumps(body), headers=edit)
    assert (answer.status_code, answer.json().get("notes")) == (200, text)


def test_another_encoding_cannot_hide_values(shared_site: Any) -> None:
    text = '{"\u2200": 1, "a": ' + "[" * 900
    answer = shared_site.admin.post("/api/v1/experiments", content=text.encode("utf-16-le"), headers=JSON)
    assert "UTF-8" in small(answer, "request.invalid")["detail"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("verb", ["", "/{experiment_id}:clone"])
def test_a_body_is_not_nested_deeply(shared_site: Any, opening: bytes, verb: str) -> None:
    address = "/api/v1/experiments" + verb.format(experiment_id=shared_site.submit())
    type_ = "application/merge-patch+json" if verb else "application/json"
    answer = shared_site.admin.post(address, content=opening * 900, headers={"Content-Type": type_})
    assert "nested" in small(answer, "request.too_large")["detail"]


def test_many_wrong_query_values_make_a_small_answer(shared_site: Any) -> None:
    small(shared_site.admin.get("/api/v1/experiments?" + "&".join(["state=asleep"] * 4_000)), "request.invalid")


def test_an_error_is_bounded_wherever_it_comes_from() -> None:
    errors = [FieldError(field="f" * 999, message="m" * 9_999, value="v" * 999) for _ in range(500)]
    error = FerretError.of_fields("spec.invalid", errors)
    assert (len(error.errors), error.omitted) == (20, 480)
    assert len(error.detail) <= 4_000
    assert len(json.dumps(error.to_json())) < 40_000
    assert len(FerretError.of_field("spec.invalid", "x", list(range(10**6)), "is long").detail) < 400
    assert FerretError.of_field("spec.invalid", "x", 10**5_000, "is large").errors[0].value == "a number of 16610 bits"
    assert FerretError.of_field("spec.invalid", "x", float("nan"), "is none").to_json()["errors"][0]["value"] == "nan"


def test_the_first_of_many_unknown_fields_are_told_with_what_they_may_stand_for() -> None:
    with pytest.raises(ValueError) as caught:
        ExperimentSpec.model_validate({"round" + "s" * 100_000: 1, "roundz": 2, **{f"k{n}": n for n in range(50)}})
    found = field_errors(caught.value, model=ExperimentSpec)
    assert len(found.told) == 20
    assert any("did you mean round" in error.message for error in found.told)


def test_the_size_of_json_is_a_setting(make_settings: Any) -> None:
    with open_site(make_settings(max_request_bytes=4096, max_upload_bytes=1 << 20)) as site:
        small(site.admin.post("/api/v1/experiments", content=b" " * 5000, headers=JSON), "request.too_large")


@pytest.mark.parametrize("operation", ["experiments", "experiments:plan", "experiments:revise"])
def test_what_takes_a_specification_takes_a_long_one(make_settings: Any, operation: str) -> None:
    with open_site(make_settings()) as site:
        document = b'{"spec": {}, "rest": "' + b"x" * 50_000 + b'"}'
        answer = site.admin.post(f"/api/v1/{operation}", content=document, headers=JSON)
        assert answer.status_code != 413
