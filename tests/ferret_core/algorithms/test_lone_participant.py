"""What a participant without gradients sends leads the server to where it ended itself, within rounding."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ferret_core.algorithms import base, fedkseed
from tests.ferret_core.replicas import SpecFactory, flat, move, replica_of, sent_by

LOCAL = {"learning_rate": 1e-3, "steps": 6, "batch_size": 2, "epsilon": 1e-3, "perturbations": 3}


@pytest.mark.parametrize(
    ("name", "module", "options", "off"),
    [
        ("fedkseed", fedkseed, {"K": 9}, 1e-5),
        ("fedzo", base, {}, 1e-7),
    ],
)
@pytest.mark.heavy
def test_the_server_ends_where_a_lone_participant_did(
    toy_spec: SpecFactory,
    name: str,
    module: ModuleType,
    options: dict[str, Any],
    off: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The participant's last weights are looked at before its own are put back."""
    replica = replica_of(toy_spec(name, options={**options, "local": LOCAL}))
    ended: list[Tensor] = []
    zeroth_order_steps = module.zeroth_order_steps

    def watched(model: nn.Module, *arguments: Any) -> Any:
        done = zeroth_order_steps(model, *arguments)
        ended.append(flat(model))
        return done

    monkeypatch.setattr(module, "zeroth_order_steps", watched)
    sent = sent_by(replica)[0].contribution
    before = flat(replica.model)
    move(replica, sent)
    torch.testing.assert_close(flat(replica.model), ended[0], rtol=0, atol=off)
    assert float((ended[0] - before).abs().max()) > 1e-3
