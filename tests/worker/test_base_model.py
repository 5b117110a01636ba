"""The base model as a worker stores it: its digest is that of the researcher's folder, whoever computes it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ferret_core.evaluation.streaming_generation import load_checkpoint
from ferret_core.models import definition
from ferret_core.models.load import digest_of, load
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.replica.replica import Replica
from ferret_core.simulate import simulate
from ferret_db.repositories import artifacts
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def source(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """A model as people publish them: written by other versions of the library, and with other things beside it."""
    folder = shutil.copytree(tiny_model_dir, tmp_path / "source")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float16", "unknown": [1, 2]}))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    legacy = {"name_or_path": "/home/them", "special_tokens_map_file": "/home/them/special_tokens_map.json"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, **legacy}))
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}\n\n")
    (folder / "README.md").write_text("# A model")
    (folder / "trainer_state.json").write_text("{}")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "default.jinja").write_text("other")
    return folder


def stored(service: Service, experiment_id: str, folder: Path) -> Path:
    """A download of the experiment's base model."""
    folder.mkdir()
    with service.database.read() as s:
        for file in artifacts.of_round(s, experiment_id, 0):
            (folder / file.name).write_bytes(service.context.storage.read(file.location, file.digest))
    return folder


@usually_on("sqlite")
@pytest.mark.parametrize("algorithm", ["ferret", "fedit", "fed_sb"])
def test_source_checkpoint_and_download_have_one_digest(
    service: Service, toy_spec: SpecFactory, source: Path, tmp_path: Path, algorithm: str
) -> None:
    model = {"source": str(source), "digest": digest_of(load(ModelSpec(source=str(source))))}
    spec = toy_spec(algorithm, rounds=1, model=model, prompt={"template": "auto"})
    expected = simulate(toy_spec(algorithm, rounds=1, model=model, prompt={"template": "chat"}))
    experiment_id = service.submit(spec)
    service.step()
    service.context = service.new_context()  # which loads what is stored
    service.run()
    experiment = service.experiment(experiment_id)
    assert experiment.state == ExperimentState.COMPLETED
    assert (experiment.base_digest, experiment.digest) == (expected.rounds[0].digest, expected.digest)
    assert experiment.spec["prompt"]["template"] == "chat", "explicit once the base model is loaded"
    copy = stored(service, experiment_id, tmp_path / "copy")
    assert definition.read(copy) == definition.read(source)
    others = {path.name for path in copy.iterdir()} - definition.NAMES
    bases = {definition.BASES} if algorithm == "fed_sb" else set[str]()
    assert others == {"model.safetensors", "ferret.json", *bases}
    assert Replica.load(spec, copy).digest == experiment.base_digest
    (copy / "chat_template.jinja").write_text("{{ messages[0]['content'] }}\n")
    changed = spec.model_copy(update={"model": ModelSpec(source=spec.model.source)})
    assert Replica.load(changed, copy).digest != experiment.base_digest


@usually_on("sqlite")
def test_the_stored_base_model_is_asked_in_the_type_of_its_weights(
    service: Service, toy_spec: SpecFactory, source: Path, tmp_path: Path
) -> None:
    """Its configuration names another."""
    experiment_id = service.submit(toy_spec(model={"source": str(source)}))
    service.step()
    copy = stored(service, experiment_id, tmp_path / "copy")
    assert json.loads((copy / "config.json").read_text())["dtype"] == "float16"
    asked = load_checkpoint(copy, copy, "chat")
    assert {weight.dtype for weight in asked.model.parameters()} == {torch.float32}


@usually_on("sqlite")
def test_another_model_at_the_source_is_refused_by_the_digest_of_the_specification(
    service: Service, toy_spec: SpecFactory, source: Path
) -> None:
    digest = digest_of(load(ModelSpec(source=str(source))))
    (source / "generation_config.json").write_text('{"temperature": 0.5, "do_sample": true}')
    experiment_id = service.submit(toy_spec(model={"source": str(source), "digest": digest}))
    service.run()
    error = service.experiment(experiment_id).error
    assert (error["code"], error["errors"][0]["field"]) == ("model.invalid", "model.digest")
    assert digest_of(load(ModelSpec(source=str(source)))) in error["detail"]
