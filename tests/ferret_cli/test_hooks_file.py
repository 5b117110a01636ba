"""``--site FILE.py``: what is found in it, and what is said of a file that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferret_cli import hooks_file
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
SITE = "from ferret_sdk import Site\nsite = Site()\n"
EVALUATE = "@site.evaluate\ndef evaluate(model, examples, context):\n    return 1.0\n"


def test_the_site_is_found_with_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own_helpers_of_the_site.py").write_text("LOSS = 1.5\n")
    path = tmp_path / "my-site.py"
    path.write_text(f"from own_helpers_of_the_site import LOSS\n{SITE}alias = site\n{EVALUATE}".replace("1.0", "LOSS"))
    site = hooks_file.load(path)
    assert site.evaluates is not None
    assert site.evaluates(None, [], None) == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no sites"),
        (f"{SITE}other = Site()\n", "defines 2 sites"),
        (SITE, "neither a function under @site.train nor"),
        ("\nimport nothing_of_that_name\n", "line 2: ModuleNotFoundError"),
        ("\ndef (", "line 2: SyntaxError"),
    ],
)
def test_a_file_that_is_no_site_is_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "site.py"
    path.write_text(text)
    with refused("request.invalid", message) as raised:
        hooks_file.load(path)
    assert (raised.value.code, raised.value.errors[0].field) == ("request.invalid", "--site")


@pytest.mark.parametrize("name", ["missing.py", "site.toml"])
def test_what_is_no_python_file_is_told(tmp_path: Path, name: str) -> None:
    with refused("request.invalid", "--site"):
        hooks_file.load(tmp_path / name)


@pytest.mark.heavy
@pytest.mark.slow
def test_the_example_trains_in_a_simulation(ferret_in_process):
    one_round = ["--set", "rounds=1", "--set", "evaluation.generate_examples=0", "--set", "algorithm.local.steps=2"]
    command = ["simulate", ROOT / "examples/quickstart.toml", *one_round, "--json"]
    done = ferret_in_process(*command, "--site", ROOT / "examples/site/own_loop.py")
    assert done.returncode == 0, done.stderr
    _, first = json.loads(done.stdout)["rounds"]
    assert {"train_loss", "participant_eval_loss"} <= set(first["metrics"])
    refused = ferret_in_process(
        *command, "--set", "algorithm.name=scaffold", "--site", ROOT / "examples/site/own_loop.py"
    )
    assert "scaffold" in refused.stderr
    assert refused.returncode == 2
