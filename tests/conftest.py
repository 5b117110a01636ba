"""Fixtures for every test: what to do when a service is missing, a tiny real model, a toy task."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by huggingface_hub when it is imported
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("FERRET_DATA_ROOTS", "/")  # tests have their files anywhere
os.environ.setdefault("FERRET_MIN_PARTICIPANTS", "1")  # and few participants
os.environ.setdefault("OMP_NUM_THREADS", "1")  # of torch, here and in the processes that tests start

import copy
import json
import logging
import runpy
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import hypothesis
import psycopg
import pytest
import torch

os.environ.setdefault("TRITON_INTERPRET", str(int(not torch.cuda.is_available())))  # read when triton is imported

from sqlalchemy import Connection, Engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import make_url
from sqlalchemy.util import LRUCache
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.storage import ObjectStore
from ferret_db import migrate
from ferret_runtime import log_setup
from tests import object_store as s3_server
from tests import postgresql_server

if TYPE_CHECKING:  # it takes three seconds, which the process that only hands out tests can save
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

PLUGINS = Path(__file__).parent / "plugins"
runpy.run_path(str(PLUGINS / "sitecustomize.py"))  # here; and in the processes that tests start:
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PLUGINS), os.environ.get("PYTHONPATH")]))
# Tiny tensors gain nothing from threads, and several test processes share the cores.
torch.set_num_threads(1)
# SQLAlchemy compiles a statement once for each engine; each test has engines of its own, all alike on SQLite.
COMPILED = LRUCache[Any, Any](5000)
SQLiteDialect.__hash__ = lambda self: hash(type(self))
SQLiteDialect.__eq__ = lambda self, other: type(self) is type(other)


@event.listens_for(Engine, "engine_connect")
def share_compiled_statements(connection: Connection) -> None:
    if isinstance(connection.dialect, SQLiteDialect):
        connection.engine._compiled_cache = COMPILED


# No test depends on how fast the machine is.
hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")
# A shell ignores SIGINT for its background jobs, and children inherit that: Ctrl-C is part of what is tested.
signal.signal(signal.SIGINT, signal.default_int_handler)

CONTEXT = 128


@pytest.fixture(autouse=True)
def no_log_handler_is_left() -> Iterator[None]:
    """Fails a test that leaves a handler at the root logger: what others say would go into a stream that is closed."""
    root = logging.getLogger()

    def handlers() -> list[logging.Handler]:
        return [handler for handler in root.handlers if type(handler).__module__ != "_pytest.logging"]

    before = handlers()
    yield
    left = [handler for handler in handlers() if handler not in before]
    for handler in left:
        root.removeHandler(handler)
    assert left == []


@pytest.fixture
def own_logging() -> Iterator[None]:
    """For a test that sets logging up as the service's processes do: the process' own is as before afterwards."""
    root, quiet = logging.getLogger(), {name: logging.getLogger(name).level for name in log_setup.TALKATIVE}
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


@pytest.fixture(scope="session")
def need() -> Callable[[bool, str], None]:
    """``need(condition, reason)``: skips where something is missing, but fails in CI, which must have everything."""

    def check(condition: bool, reason: str) -> None:
        if condition:
            return
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must provide this: {reason}")
        pytest.skip(reason)

    return check


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The address of an S3 server."""
    with s3_server.started() as endpoint:
        yield endpoint


@pytest.fixture
def bucket(
    object_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[str, ObjectStore]]:
    """``bucket(part_bytes=…)``: the URL of a new, empty bucket, and how to reach it; credentials are in the
    environment."""
    for name, value in {**s3_server.CREDENTIALS, **s3_server.ENVIRONMENT}.items():
        monkeypatch.setenv(name, value)

    def new(**options: Any) -> tuple[str, ObjectStore]:
        name = f"ferret-{secrets.token_hex(8)}"
        s3_server.make_bucket(object_store, name)
        given = {"endpoint": object_store, "cache": tmp_path / "cache", "timeout_seconds": 5, **options}
        return f"s3://{name}", ObjectStore(**given)

    return new


@pytest.fixture(scope="session")
def postgresql(need: Callable[[bool, str], None]) -> Iterator[Callable[..., AbstractContextManager[str]]]:
    """``with postgresql() as url``: an empty database of its own on the test server, dropped afterwards.

    ``postgresql(migrated=True)`` has all tables, copied from a database that was migrated once.
    """
    with ExitStack() as servers:

        @cache
        def address() -> str:
            if postgresql_server.answers(postgresql_server.USUAL):
                return postgresql_server.USUAL
            program = postgresql_server.find_program()
            need(program is not None, postgresql_server.MISSING)
            return servers.enter_context(postgresql_server.started(str(program)))

        @cache
        def template() -> str:
            url = servers.enter_context(new())
            migrate.upgrade(url)
            return str(make_url(url).database)

        @contextmanager
        def new(*, migrated: bool = False) -> Iterator[str]:
            name = f"ferret_test_{secrets.token_hex(8)}"
            source = f" TEMPLATE {template()}" if migrated else ""
            with psycopg.connect(address(), autocommit=True) as server:
                server.execute(f"CREATE DATABASE {name}{source}".encode())
                server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off".encode())  # no test cuts the power
                try:
                    yield make_url(address()).set(database=name).render_as_string(hide_password=False)
                finally:
                    server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

        yield new


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with all tables and the first project, to be copied: a migration takes longer than a test."""
    path = tmp_path_factory.mktemp("migrated") / "ferret.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def toy_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A training and a test file of an easy task in three categories: answer with the word that was given."""
    words = ["red", "green", "blue", "fish", "bird", "tree", "sun", "moon", "rain", "snow"]
    rows = [
        {"instruction": "Repeat.", "input": words[i % 10], "output": words[i % 10], "label": f"category {i % 3}"}
        for i in range(60)
    ]
    folder = tmp_path_factory.mktemp("toy")
    for name, part in (("train.jsonl", rows), ("test.jsonl", rows[:10])):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    return folder / "train.jsonl", folder / "test.jsonl"


class DatasetSample(NamedTuple):
    """A small valid dataset: its options, the files its parts are read from, and which option an error is about."""

    options: dict[str, Any]
    train: Path
    test: Path
    blamed: str


@pytest.fixture(scope="session")
def dataset_sample() -> Callable[[str, Path], DatasetSample]:
    """``dataset_sample(name, folder)``: a few rows of our own in the dataset's official format; a new one goes here."""
    samples = {
        "codealpaca": _codealpaca,
        "dolly": _dolly,
        "gsm8k": _gsm8k,
        "jsonl": _jsonl,
        "natural_instructions": _natural_instructions,
    }

    def make(name: str, folder: Path) -> DatasetSample:
        assert name in samples, f"add a sample of {name!r} to the fixture dataset_sample in tests/conftest.py"
        return samples[name](folder)

    return make


@pytest.fixture(scope="session")
def toy_spec(tiny_model_dir: Path, toy_data: tuple[Path, Path]) -> Callable[..., ExperimentSpec]:
    """``toy_spec("ferret", rounds=3)``: three simulated clients that learn the toy task with a tiny model."""

    def make(algorithm: str = "ferret", /, *, options: dict[str, Any] | None = None, **changes: Any) -> ExperimentSpec:
        local = {"learning_rate": 1e-2, "steps": 4, "batch_size": 4, "accumulation": 1}
        adam = {"optimizer": "adam"} if algorithm == "ferret" else {}
        # Its weights are small random numbers that mean nothing, so noise cannot spoil them.
        unguarded = {"refuse_noisy_rounds": False} if algorithm == "ferret" else {}
        public = {"public_examples": 2} if algorithm == "fed_sb" else {}
        spec: dict[str, Any] = {
            "name": "toy",
            "seed": 5,
            "rounds": 3,
            "model": {"source": str(tiny_model_dir)},
            "dataset": {"name": "jsonl", "train": str(toy_data[0]), "test": str(toy_data[1])},
            "participants": {"simulated": 3},
            "algorithm": {"name": algorithm, "local": {**adam, **local}, **unguarded, **public, **(options or {})},
            "evaluation": {"examples": 10, "generate_examples": 4, "max_new_tokens": 8},
        }
        if algorithm not in ("fedkseed", "fedzo"):
            # The numbers are the same on hardware with bf16 and without.
            spec["algorithm"]["local"] = {"precision": "float32"} | spec["algorithm"]["local"]
        return ExperimentSpec.model_validate(spec | changes)

    return make


@pytest.fixture
def one_bad_client(toy_spec: Callable[..., ExperimentSpec], tiny_model_dir: Path, tmp_path: Path) -> ExperimentSpec:
    """Four clients, a quorum of half, and one answer that is infinitely unlikely to the model: one client has it."""
    from transformers import AutoTokenizer, LlamaForCausalLM

    model: Any = LlamaForCausalLM.from_pretrained(tiny_model_dir)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_dir)
    model.config.tie_word_embeddings = False
    head = model.get_input_embeddings().weight.detach().clone()
    head[tokenizer.convert_tokens_to_ids("~")] = torch.tensor([-1e38] + [0.0] * 31)
    model.lm_head.weight = torch.nn.Parameter(head)
    with torch.no_grad():
        model.get_input_embeddings().weight[:, 0] = 1  # the first hidden number is positive everywhere
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    rows = [{"instruction": "Repeat.", "input": word, "output": word} for word in ["sun", "rain", "snow", "moon"] * 4]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:4]))
    rows[0]["output"] = "~"
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return toy_spec(
        "fedavg",
        rounds=2,
        model={"source": str(tmp_path / "model")},
        dataset={"name": "jsonl", "train": str(tmp_path / "train.jsonl"), "test": str(tmp_path / "test.jsonl")},
        participants={"simulated": 4},
        round={"quorum": 0.5},
        evaluation={"examples": 4, "generate_examples": 2, "max_new_tokens": 8},
    )


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in Hugging Face layout: two layers, hidden size 32, 384 tokens, a context of 128."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("tiny-llama")
    _tokenizer().save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=384,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_model_dir: Path) -> PreTrainedTokenizerFast:
    """Byte-level, so that any text round-trips; puts ``<s>`` first, and has ``</s>`` and ``<pad>``."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model_dir)  # pyrefly: ignore[bad-return]


@pytest.fixture(scope="session")
def _loaded(tiny_model_dir: Path) -> LlamaForCausalLM:
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained(tiny_model_dir, dtype=torch.float32).eval()


@pytest.fixture
def tiny_model(_loaded: LlamaForCausalLM) -> LlamaForCausalLM:
    """A copy of its own for every test, in evaluation mode."""
    return copy.deepcopy(_loaded)


def _tokenizer() -> PreTrainedTokenizerFast:
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=384,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([prompt_of(Example("", "x", ""))], trainer)
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=CONTEXT
    )


def _codealpaca(folder: Path) -> DatasetSample:
    languages = ["C", "C++", "Go", "X86-64 Assembly"]
    rows = [{"instruction": f"Print {i}.", "input": languages[i % 4], "output": f"print({i})"} for i in range(40)]
    path = folder / "rosetta_alpaca.json"
    path.write_text("[" + ",\n".join(map(json.dumps, rows)) + "]")
    return DatasetSample({"path": str(path), "languages": 3}, path, path, "dataset.path")


def _dolly(folder: Path) -> DatasetSample:
    categories = ["brainstorming", "closed_qa", "summarization"]
    rows = [
        {"instruction": f"Say {i}.", "context": "", "response": str(i), "category": categories[i % 3]}
        for i in range(20)
    ]
    path = _lines(folder / "databricks-dolly-15k.jsonl", rows)
    return DatasetSample({"path": str(path)}, path, path, "dataset.path")


def _gsm8k(folder: Path) -> DatasetSample:
    return _two_files(folder, [{"question": f"{i} + {i}?", "answer": f"#### {2 * i}"} for i in range(20)])


def _jsonl(folder: Path) -> DatasetSample:
    rows = [{"instruction": "Double.", "input": str(i), "output": str(2 * i), "label": "maths"} for i in range(20)]
    return _two_files(folder, rows)


def _natural_instructions(folder: Path) -> DatasetSample:
    for name, count in (("task1_a", 100), ("task2_b", 50), ("task3_c", 4)):
        instances = [{"id": str(i), "input": f"{name} {i}", "output": [str(i), "none"]} for i in range(count)]
        _lines(folder / "tasks" / f"{name}.json", [{"Definition": [f"Do {name}."], "Instances": instances}])
    for split, names in (("train", "task1_a\ntask2_b\n"), ("test", "task3_c\n")):
        (folder / "splits" / "default").mkdir(parents=True, exist_ok=True)
        (folder / "splits" / "default" / f"{split}_tasks.txt").write_text(names)
    tasks = folder / "tasks"
    return DatasetSample({"tasks": str(folder)}, tasks / "task2_b.json", tasks / "task3_c.json", "dataset.tasks")


def _two_files(folder: Path, rows: list[dict[str, Any]]) -> DatasetSample:
    """Options ``train`` and ``test``: the rows, and their last fifth."""
    train = _lines(folder / "train", rows[: -len(rows) // 5])
    test = _lines(folder / "test", rows[-len(rows) // 5 :])
    return DatasetSample({"train": str(train), "test": str(test)}, train, test, "dataset.train")


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path
