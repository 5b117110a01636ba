from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from ferret_core.protocol.spec import CheckpointSpec, ExperimentSpec, PluginChoice

MINIMAL = {
    "name": "test",
    "model": {"source": "/models/tiny"},
    "dataset": {"name": "jsonl", "train": "a.jsonl"},
    "participants": {"simulated": 2},
}


def test_json_and_back_is_the_same_specification() -> None:
    spec = ExperimentSpec.model_validate(MINIMAL)
    assert ExperimentSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.dataset.options == {"train": "a.jsonl"}
    assert spec.algorithm == PluginChoice(name="ferret")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"round": {"dedline_seconds": 1}}, ("round", "dedline_seconds")),
        ({"rounds": 0}, ("rounds",)),
        ({"seed": -1}, ("seed",)),
        ({"participants": {"simulated": 0}}, ("participants",)),
        ({"participants": {"simulated": 2, "fraction": float("nan")}}, ("participants", "fraction")),
        ({"colour": "red"}, ("colour",)),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], field: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError) as caught:
        ExperimentSpec.model_validate(MINIMAL | change)
    assert [error["loc"] for error in caught.value.errors()] == [field]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"unit": "patient"}, "pattern"),
        ({"unit": "site"}, "does not use batch, records_least, epsilon"),
        ({"batch": None}, "needs batch"),
        ({"epsilon": None}, "needs epsilon"),
        ({"batch": 101}, "more than records_least"),
        ({"delta": 0.01}, "could publish a record"),
    ],
)
def test_protection_of_records_is_complete_or_refused(changes: dict[str, object], message: str) -> None:
    privacy = {"unit": "example", "epsilon": 8.0, "batch": 10, "records_least": 100}
    ExperimentSpec.model_validate(MINIMAL | {"privacy": privacy})
    with pytest.raises(ValidationError, match=message):
        ExperimentSpec.model_validate(MINIMAL | {"privacy": privacy | changes})


def test_a_null_keep_of_an_earlier_release_stays_null_for_the_digest_in_its_ledger() -> None:
    kept = [
        CheckpointSpec.model_validate(given).model_dump()["keep"] for given in ({"keep": None}, {"keep": "all"}, {})
    ]
    assert kept == [None, "all", 2]


@pytest.mark.heavy
def test_the_protocol_needs_no_torch() -> None:
    code = (
        "import pkgutil, importlib, sys, ferret_core.protocol as p\n"
        "[importlib.import_module(f'{p.__name__}.{m.name}') for m in pkgutil.iter_modules(p.__path__)]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
