"""Editing an experiment's name, tags, notes and priority."""

from __future__ import annotations

from typing import Any

import pytest

URL = "/api/v1/experiments"


def edit(site: Any, experiment_id: str, change: dict[str, Any], **headers: str) -> Any:
    return site.admin.patch(f"{URL}/{experiment_id}", json=change, headers=headers)


def edits(site: Any, experiment_id: str) -> list[dict[str, Any]]:
    return [entry["detail"] for entry in site.audit(subject=experiment_id, action="experiment.edited")]


def test_what_is_given_changes_and_the_rest_stays(site: Any) -> None:
    experiment_id = site.submit(name="first")
    edit(site, experiment_id, {"tags": ["b", " A  b ", "B"], "notes": "as *before*"}).raise_for_status()
    answer = edit(site, experiment_id, {"name": "second"})
    found = answer.json()
    assert (found["name"], found["tags"], found["notes"]) == ("second", ["A b", "b"], "as *before*")
    assert found == site.admin.get(f"{URL}/{experiment_id}").json()
    assert found["spec"]["name"] == "first", "the ledger holds the digest of the specification"
    merge = {"Content-Type": "application/merge-patch+json"}
    cleared = edit(site, experiment_id, {"tags": None, "notes": None}, **merge).json()
    assert (cleared["tags"], cleared["notes"]) == ([], "")


def test_a_priority_is_given_at_submission_and_changed_later(site: Any) -> None:
    spec = site.admin.get(f"{URL}/{site.submit()}").json()["spec"]
    submitted = site.admin.post(URL, json=spec, params={"priority": 4}).json()
    assert submitted["priority"] == 4
    assert edit(site, submitted["id"], {"priority": 2}).json()["priority"] == 2
    assert edits(site, submitted["id"]) == [{"name": spec["name"], "priority": 2}]
    clone = site.admin.post(f"{URL}/{submitted['id']}:clone", json={}).json()
    assert clone["priority"] == 1, "what hurries may be done with"


def test_the_audit_log_tells_who_changed_what_and_not_the_notes(site: Any) -> None:
    experiment_id = site.submit(name="first")
    edit(site, experiment_id, {"name": "second", "tags": ["a", "b"], "notes": "Mrs Smith"})
    edit(site, experiment_id, {"name": "second", "tags": ["b", "a"]})
    edit(site, experiment_id, {})
    detail = {"name": "second", "name_before": "first", "tags": "a, b", "notes_characters": 9}
    assert edits(site, experiment_id) == [detail], "what changes nothing is no action"


def test_an_edit_of_what_was_edited_since_is_refused(site: Any) -> None:
    experiment_id = site.submit()
    read = site.admin.get(f"{URL}/{experiment_id}")
    first = edit(site, experiment_id, {"notes": "mine"}, **{"If-Match": read.headers["ETag"]})
    assert first.status_code == 200
    refused = edit(site, experiment_id, {"notes": "yours"}, **{"If-Match": read.headers["ETag"]})
    assert (refused.status_code, refused.json()["code"]) == (412, "experiment.changed")
    assert site.admin.get(f"{URL}/{experiment_id}").headers["ETag"] == first.headers["ETag"]
    again = edit(site, experiment_id, {"notes": "ours"}, **{"If-Match": f'"x", W/{first.headers["ETag"]}'})
    assert again.json()["notes"] == "ours"
    assert edit(site, experiment_id, {"notes": ""}, **{"If-Match": "*"}).status_code == 200


def test_progress_is_no_edit(site: Any) -> None:
    experiment_id = site.running()
    tag = site.admin.get(f"{URL}/{experiment_id}").headers["ETag"]
    site.committed(experiment_id)
    assert edit(site, experiment_id, {"tags": ["a"]}, **{"If-Match": tag}).status_code == 200


def test_an_archived_one_can_be_edited_and_a_deleted_one_leaves_nothing(site: Any) -> None:
    experiment_id = site.submit()
    for verb in ("cancel", "archive"):
        site.admin.post(f"{URL}/{experiment_id}:{verb}").raise_for_status()
    assert edit(site, experiment_id, {"tags": ["old"]}).json()["tags"] == ["old"]
    assert site.admin.delete(f"{URL}/{experiment_id}").status_code == 204
    assert edit(site, experiment_id, {}).status_code == 404


def test_a_clone_has_the_new_name_and_the_tags_and_no_notes(site: Any) -> None:
    experiment_id = site.submit(name="first")
    edit(site, experiment_id, {"name": "second", "tags": ["hearts"], "notes": "went well"})
    clone = site.admin.post(f"{URL}/{experiment_id}:clone", json={}).json()
    assert (clone["name"], clone["tags"], clone["notes"]) == ("second", ["hearts"], "")
    renamed = site.admin.post(f"{URL}/{experiment_id}:clone", json={"name": "third"}).json()
    assert (renamed["name"], renamed["spec"]["name"]) == ("third", "third")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"tags": ["x" * 41]}, "tags.0"),
        ({"tags": [str(number) for number in range(21)]}, "tags"),
        ({"notes": "x" * 20_001}, "notes"),
        ({"priority": 0}, "priority"),
        ({"priority": 9}, "priority"),
        ({"priority": None}, "priority"),
        ({"state": "completed"}, "state"),
    ],
)
def test_what_cannot_be_is_named(site: Any, change: dict[str, Any], field: str) -> None:
    experiment_id = site.submit()
    answer = edit(site, experiment_id, change)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field
    assert edits(site, experiment_id) == []
