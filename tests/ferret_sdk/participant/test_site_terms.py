"""``site.toml`` as it is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferret_sdk.participant import site_terms
from ferret_sdk.participant.site_terms import Terms
from tests.refusals import refused

DOCUMENT = Path(__file__).parents[3] / "docs/sites/site-terms.md"


def test_the_documented_file_is_valid_and_has_every_term(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    (tmp_path / "site.toml").write_text(shown)
    read = site_terms.of_home(tmp_path)
    assert set(read.allow.model_dump(exclude_defaults=True)) == set(site_terms.Allow.model_fields)
    assert set(read.limits.model_dump(exclude_defaults=True)) == set(site_terms.Limits.model_fields)
    assert read.privacy is not None


def test_without_a_file_nothing_is_restricted(tmp_path: Path) -> None:
    assert site_terms.of_home(tmp_path) == Terms()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nstep = 5", "did you mean steps?"),
        ("[limits]\nsteps = 0", "site.toml.limits.steps = 0"),
        ("[allow]\nquiet_hours = ['7-19']", "07:00-19:00"),
        ("[allow", "is not TOML"),
        ("[limits]\nhours = nan", "limits.hours"),
        ("\udcff", "is not TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "site.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with refused("terms.invalid", said):
        site_terms.read(path)


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with refused("terms.invalid", "cannot be read"):
        site_terms.read(tmp_path / "site.toml")


def test_a_file_that_everybody_can_change_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text("[limits]\nsteps = 5\n")
    path.chmod(0o646)
    with refused("terms.invalid", "chmod o-w"):
        site_terms.read(path)
