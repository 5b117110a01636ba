"""What is carried to a machine without an index is all that Ferret needs and an image for training lacks."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import Refusal, lock
from scripts.gpu_wheels import CORE, SERVICE, THERE, _there, fetch

IMAGE = {
    *("absl-py", "certifi", "click", "cloudpickle", "contourpy", "cycler", "fonttools", "httpcore", "httpx", "joblib"),
    *("kiwisolver", "matplotlib", "pillow", "pyparsing", "python-dateutil", "six"),
}
"""What an image for training has, beside what its libraries below need."""
FRAMEWORKS = ("torch", "triton", "transformers", "peft", "numba")


def needs(*names: str) -> set[str]:
    """The installed distributions that these need, themselves among them."""
    found, waiting = set[str](), [Requirement(name) for name in names]
    while waiting:
        wanted = waiting.pop()
        known = f"{canonicalize_name(wanted.name)}[{','.join(sorted(wanted.extras))}]"
        if known in found:
            continue
        try:
            requires = distribution(wanted.name).requires or []
        except PackageNotFoundError:
            continue
        found.add(known)
        extras = wanted.extras or {""}
        for requirement in map(Requirement, requires):
            if requirement.marker is None or any(
                requirement.marker.evaluate({**THERE, "extra": extra}) for extra in extras
            ):
                waiting.append(requirement)
    return {name.partition("[")[0] for name in found}


def test_with_an_image_for_training_they_are_all_that_is_needed() -> None:
    # Of the benchmarks' own needs the search for options is left out: nothing is tuned on a machine that is lent.
    wanted = needs("ferret-service[embedded]", "proxy.py", "trustme") - set(map(canonicalize_name, lock.OURS))
    assert wanted <= needs(*FRAMEWORKS) | IMAGE | set(CORE) | set(SERVICE)
    core = needs("ferret-participant[train,draw]") - {"ferret-participant"}
    assert core <= needs(*FRAMEWORKS) | IMAGE | set(CORE)


def test_each_is_in_the_lock() -> None:
    assert {*CORE, *SERVICE} <= {pin.name for pin in lock.pins(lock.DEVELOPMENT)}


def test_a_package_that_the_lock_does_not_name_is_refused(tmp_path) -> None:
    with pytest.raises(Refusal, match="the lock does not name no-such-thing"):
        fetch(tmp_path / "wheels", ("no-such-thing",))
    assert not (tmp_path / "wheels").exists()


def test_of_several_versions_the_one_for_the_other_machines_python_is_fetched() -> None:
    found = [pin for pin in map(_there, lock.pins(lock.DEVELOPMENT)) if pin is not None and pin.name == "deprecated"]
    assert len(found) == 1
    versions = {pin.version: "< '3.12'" in pin.lines for pin in lock.pins(lock.DEVELOPMENT) if pin.name == "deprecated"}
    assert versions[found[0].version] is False
    assert ";" not in found[0].lines
    assert "--hash=sha256:" in found[0].lines
