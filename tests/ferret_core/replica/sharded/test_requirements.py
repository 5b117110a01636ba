"""What a team cannot train is refused before anything is loaded, with the field to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.sharded.requirements import require_fit
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]
IN_BACKWARD = {"optimizer": "sgd", "in_backward": True, "accumulation": 1}


@pytest.mark.parametrize("algorithm", ["ferret", "fedavg", "diloco"])
def test_what_moves_the_model_by_plain_steps_fits(toy_spec: SpecFactory, algorithm: str) -> None:
    require_fit(catalog.resolve(toy_spec(algorithm)))


@pytest.mark.parametrize(
    ("algorithm", "options", "changes", "field"),
    [
        ("fedit", {}, {}, "algorithm.name"),
        ("fed_sb", {}, {}, "algorithm.name"),
        ("scaffold", {}, {}, "algorithm.name"),
        ("ferret", {"allocation": "curvature"}, {}, "algorithm.allocation"),
        ("fedavg", {"local": IN_BACKWARD}, {}, "algorithm.local.in_backward"),
        ("fedavg", {}, {"server": {"momentum": 0.9}}, "server.momentum"),
        ("fedavg", {}, {"server": {"optimizer": "adam"}}, "server.optimizer"),
        ("fedavg", {}, {"robust": {"rule": "agree"}}, "robust.rule"),
    ],
)
def test_what_needs_the_whole_model_is_refused(
    toy_spec: SpecFactory, algorithm: str, options: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    spec = catalog.resolve(toy_spec(algorithm, options=options, **changes))
    with pytest.raises(FerretError) as caught:
        require_fit(spec)
    assert (caught.value.code, caught.value.errors[0].field) == ("request.invalid", field)
    assert "one process" in caught.value.detail


def test_half_precision_is_refused(toy_spec: SpecFactory, tiny_model_dir: Any) -> None:
    spec = catalog.resolve(toy_spec(model={"source": str(tiny_model_dir), "dtype": "bfloat16"}))
    with refused("request.invalid", "model.dtype = 'bfloat16'", "32"):
        require_fit(spec)
