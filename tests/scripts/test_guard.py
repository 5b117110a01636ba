"""The guard against code that comes as data: what it must find, what it must leave alone, and our own sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import guard


def findings(tmp_path: Path, source: str) -> list[tuple[int, str]]:
    path = tmp_path / "source.py"
    path.write_text(source)
    return [(finding.line, finding.reason) for finding in guard.findings_in(path)]


def test_no_source_of_ours_runs_what_it_reads() -> None:
    assert [str(finding) for path in guard.sources() for finding in guard.findings_in(path)] == []


def test_every_folder_with_sources_is_looked_at() -> None:
    seen = {path.relative_to(guard.ROOT).parts[0] for path in guard.sources()}
    ours = {path.parts[-2] for path in guard.ROOT.glob("*/__init__.py")} | {"api", "worker", "bench"}
    assert ours - {"tests"} <= seen


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as json",
        "from pickle import loads",
        "def f():\n    import shelve",
        "import dill.source",
        "import importlib\nimportlib.import_module('cloudpickle')",
        "from importlib import import_module as bring\nbring('pickle')",
        "__import__('pickle')",
        "import torch\ntorch.load('x')",
        "import torch as t\nread = t.load",
        "from torch import load",
        "from torch import load as read",
        "import torch.hub\ntorch.hub.load('a', 'b')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import numpy as np\nnp.load('x', allow_pickle=given)",
        "AutoModel.from_pretrained('x', trust_remote_code=True)",
        "AutoModel.from_pretrained('x', trust_remote_code=spec.trusted)",
        "options = {'trust_remote_code': True}",
        "options['trust_remote_code'] = True",
        "config.trust_remote_code = True",
        "read('x', weights_only=False)",
        "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)",
        "from yaml import unsafe_load",
        "eval('1')",
        "import builtins\nbuiltins.eval('1')",
        "run = exec",
        "import pandas as pd\npd.read_pickle('x')",
        "from torch import distributed\ndistributed.all_gather_object(found, text)",
        "from torch.distributed import send_object_list as send",
        "import torch.distributed.rpc",
        "from multiprocessing.connection import Listener",
    ],
)
def test_what_runs_what_it_reads_is_found(tmp_path: Path, source: str) -> None:
    ((line, reason),) = findings(tmp_path, source)
    assert line == len(source.splitlines())
    assert "runs what it reads" in reason or "written out" in reason


@pytest.mark.parametrize(
    "source",
    [
        "model.eval()",
        "from ferret_core.system.untrusted_files import load\nload('x')",
        "import numpy as np\nnp.load('x')\nnp.load('x', allow_pickle=False)",
        "options = {'trust_remote_code': False}",
        "import yaml\nyaml.safe_load(text)",
        "from .pickle import jar",
        "connection.exec(statement)",
        "import ast\nast.literal_eval('1')",
        "'import pickle'",
        "bucket.put_object(key)\nread_object(path)",
        "from torch import distributed\ndistributed.all_gather(found, own)",
    ],
)
def test_what_only_looks_like_it_is_left_alone(tmp_path: Path, source: str) -> None:
    assert findings(tmp_path, source) == []


def test_findings_are_told_with_their_place_and_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "source.py"
    path.write_text("x = 1\nimport pickle\n")
    monkeypatch.setattr(guard, "sources", lambda: [path])
    assert guard.main() == 1
    assert f"{path}:2: pickle runs what it reads" in capsys.readouterr().err
