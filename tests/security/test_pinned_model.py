"""A server that serves the right weights with other files: a site that pins the model refuses it, untrained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.models.load import load
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, PromptSpec
from ferret_core.replica.replica import Replica
from ferret_sdk import Participant
from ferret_sdk.participant.site_terms import Terms
from tests.refusals import refused
from tests.security.hostile import ASSIGNMENT, HostileServer

pytestmark = pytest.mark.usefixtures("impatient")

Files = dict[str, bytes]
Change = Callable[[Files], object]

SOURCE = "org/base"
QUOTING = "{{ raise_exception(messages[0]['content']) }}"


def members(name: str, **values: Any) -> Change:
    return lambda files: files.update({name: json.dumps({**json.loads(files.get(name, b"{}")), **values}).encode()})


def content(name: str, data: bytes) -> Change:
    return lambda files: files.update({name: data})


def other_tokens(files: Files) -> None:
    tokenizer = json.loads(files["tokenizer.json"])
    tokenizer["normalizer"] = {"type": "Lowercase"}
    files["tokenizer.json"] = json.dumps(tokenizer).encode()


CHANGES: dict[str, Change] = {
    "tokenizer": other_tokens,
    "tokenizer settings": members("tokenizer_config.json", bos_token="</s>"),
    "template in the settings": members("tokenizer_config.json", chat_template=QUOTING),
    "template": content("chat_template.jinja", QUOTING.encode()),
    "special tokens": members("special_tokens_map.json", eos_token="<s>"),
    "generation": members("generation_config.json", temperature=2.0, do_sample=True),
    "activation": members("config.json", hidden_act="relu"),
    "positions": members("config.json", rope_parameters={"rope_theta": 7.0, "rope_type": "default"}),
    "norm": members("config.json", rms_norm_eps=0.5),
    "one blank": lambda files: files.update({"config.json": files["config.json"] + b" "}),
    "a file less": lambda files: files.pop("generation_config.json"),
}


class Site:
    """A participant of a hostile server, whose terms pin the digest of the base model."""

    def __init__(self, folder: Path, model: Path, spec: ExperimentSpec, data: Path) -> None:
        self.home, self.spec = folder / "home", spec
        self._model, self._served, self._data = model, folder / "served", data
        self.digest = self._digest_of(model)

    def other(self, change: Change) -> str:
        """Changes the model that the server serves; its digest."""
        files = {path.name: path.read_bytes() for path in self._model.iterdir()}
        change(files)
        self._served.mkdir()
        for name, data in files.items():
            (self._served / name).write_bytes(data)
        return self._digest_of(self._served)

    def refuses(self, announced: str, *, pinned: bool = True) -> FerretError:
        """The error by which it ends when the server announces a digest; nothing made of an example was sent."""
        allowed = [{"source": SOURCE, "digest": self.digest}] if pinned else None
        terms = Terms.model_validate({"allow": {"models": allowed}})
        errors: list[FerretError | None] = []
        with HostileServer(self._served, self.spec.model_dump(mode="json"), announced).running() as server:
            server.replies |= {f"{ASSIGNMENT}/{said}": server.ends("cancelled") for said in ("failure", "contribution")}
            participant = Participant.enrol(server.url, "a-code", "clinic", self.home, terms=terms)
            try:
                participant.run(self._data, lambda report: errors.append(report.error), give_up_after=0)
            except FerretError as error:
                errors.append(error)
            assert not [path for path in server.asked if "contribution" in path]
        found = {error.code: error for error in errors if error is not None}
        (error,) = found.values()
        return error

    def _digest_of(self, folder: Path) -> str:
        return Replica.load(self.spec, folder).digest


@pytest.fixture
def site(tmp_path: Path, tiny_model_dir: Path, toy_spec: Callable[..., Any], toy_data: tuple[Path, Path]) -> Site:
    spec = toy_spec(participants={"edge": 1}, model={"source": SOURCE}, prompt={"template": "chat"})
    model = shutil.copytree(tiny_model_dir, tmp_path / "model")
    (model / "chat_template.jinja").write_text("{% for message in messages %}{{ message['content'] }}{% endfor %}")
    return Site(tmp_path, model, spec, toy_data[0])


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_pinned_weights_with_other_files_are_refused_before_any_example_is_used(site: Site, change: Change) -> None:
    """A template that quotes an example in its error is not rendered: the error is the digest's."""
    site.other(change)
    assert site.refuses(site.digest).code == "storage.corrupt"


@pytest.mark.parametrize("name", ["template", "tokenizer", "activation", "generation"])
def test_other_files_with_their_own_digest_are_refused_before_they_are_downloaded(site: Site, name: str) -> None:
    error = site.refuses(site.other(CHANGES[name]))
    assert (error.code, error.errors[0].field) == ("terms.refused", "model.source")
    assert not list(site.home.rglob("config.json"))


@pytest.mark.parametrize("name", ["template", "tokenizer", "activation", "generation"])
def test_a_participant_without_terms_holds_the_server_to_the_digest_of_the_specification(site: Site, name: str) -> None:
    own = site.other(CHANGES[name])
    model = ModelSpec(source=SOURCE, digest=site.digest)
    site.spec = site.spec.model_copy(update={"model": model, "prompt": PromptSpec()})
    error = site.refuses(own, pinned=False)
    assert (error.code, error.errors[0].field, error.errors[0].value) == ("model.invalid", "model.digest", site.digest)
    assert own in error.detail


def test_a_template_of_the_server_that_no_digest_allows_is_not_rendered_under_auto(site: Site) -> None:
    digest = site.other(content("chat_template.jinja", QUOTING.encode()))
    site.spec = site.spec.model_copy(update={"prompt": PromptSpec(template="auto")})
    error = site.refuses(digest, pinned=False)
    assert (error.code, error.errors[0].field, error.errors[0].value) == ("terms.refused", "prompt.template", "chat")


@pytest.mark.parametrize(
    "name", ["preprocessor_config.json", "tokenizer.5.0.0.json", "config.5.0.0.json", "other.model", "another.jinja"]
)
def test_a_file_that_no_digest_covers_is_not_downloaded(site: Site, name: str) -> None:
    site.other(content(name, b"{}"))
    error = site.refuses(site.digest)
    assert (error.code, error.errors[0].field) == ("server.unexpected", "artifact.name")
    assert not list(site.home.rglob("config.json"))


def test_nothing_but_the_covered_files_of_a_folder_has_an_effect(
    tmp_path: Path, tiny_model_dir: Path, toy_spec: Callable[..., Any]
) -> None:
    """Further chat templates are not read, nor are the files that they link to."""
    folder = shutil.copytree(tiny_model_dir, tmp_path / "model")
    spec = toy_spec(model={"source": str(folder)})
    before = Replica.load(spec).digest
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "default.jinja").symlink_to("/etc/passwd")
    (folder / "additional_chat_templates" / "rag.jinja").write_text(QUOTING)
    (folder / "other.model").write_text("other")
    loaded = load(ModelSpec(source=str(folder)))
    assert loaded.tokenizer.chat_template is None
    assert Replica.load(spec).digest == before


def test_the_digest_of_the_specification_is_checked_wherever_the_model_is_loaded(
    tiny_model_dir: Path, toy_spec: Callable[..., Any]
) -> None:
    digest = Replica.load(toy_spec()).digest
    named = {"source": str(tiny_model_dir), "digest": digest}
    assert Replica.load(toy_spec(model=named)).digest == digest
    for algorithm in ("ferret", "fedit"):
        with refused("model.invalid", digest) as raised:
            Replica.load(toy_spec(algorithm, model={**named, "digest": "0" * 64}))
        assert (raised.value.code, raised.value.errors[0].field) == ("model.invalid", "model.digest")
