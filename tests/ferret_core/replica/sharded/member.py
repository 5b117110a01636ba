"""One process of a team that tests start: runs the cases that a JSON file asks for, and prints what it finds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.distributed.tensor import Shard, zeros

from ferret_core.distributed import process_group
from ferret_core.distributed.sharded_tensor import (
    copied,
    everywhere,
    gathered,
    held,
    is_shard,
    like,
    local,
    ranges,
    spread,
)
from ferret_core.models.parameters import trainable
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import norms, project, root_mean_squares, squared_lengths
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica.replica import Replica
from ferret_core.replica.sharded import load_sharded
from ferret_core.simulate import simulate

Case = Callable[..., Any]


def simulated(spec: dict[str, Any], out: str | None = None) -> dict[str, Any]:
    """The digests of all rounds, the ledger's hashes and the last metrics."""
    result = simulate(ExperimentSpec.model_validate(spec), Path(out) if out else None)
    return {
        "digests": [done.digest for done in result.rounds],
        "ledger": [record.hash for record in result.ledger],
        "metrics": [done.metrics for done in result.rounds],
    }


def loaded(source: str) -> dict[str, Any]:
    """How much of the model is here, and the digest of all of it."""
    team = process_group.require()
    replica = Replica.load(ExperimentSpec.model_validate_json(Path(source).read_text()))
    parameters = trainable(replica.model)
    return {
        "digest": replica.digest,
        "shards": all(map(is_shard, parameters.values())),
        "here": team.texts(str(sum(local(each).numel() for each in parameters.values()))),
        "all": sum(each.numel() for each in parameters.values()),
    }


def shards() -> dict[str, Any]:
    """A tensor of 5 rows: who holds what, all of it on the last process, and written back twice as large."""
    team = process_group.require()
    whole = torch.arange(15, dtype=torch.float32).view(5, 3)
    of_all = ranges(whole)
    part = of_all[team.rank]
    empty = zeros(5, 3, device_mesh=team.mesh, placements=[Shard(0)])
    tensor = like(empty, whole.view(-1)[part.begin : part.end].clone())
    owner = team.size - 1
    there = gathered(tensor, owner)
    some = gathered(tensor, owner, 2, 11)
    kept = copied(tensor)
    spread(None if there is None else there * 2, tensor, owner)
    return {
        "ranges": of_all,
        "held": team.texts(str(tuple(held(tensor)))),
        "gathered": team.texts(str([each if each is None else each.tolist() for each in (there, some)])),
        "spread": everywhere(tensor).tolist(),
        "copied": everywhere(kept).tolist(),
    }


def projected(source: str, rule: Any, letter: str) -> dict[str, Any]:
    """Coordinates and norms of blocks that span parameters and shards."""
    team = process_group.current()
    spec = ModelSpec(source=source)
    if team is None:
        from ferret_core.models.load import load

        before = {name: weight.detach() for name, weight in trainable(load(spec).model).items()}
        after = {name: weight.sin() for name, weight in before.items()}
    else:
        before = dict(trainable(load_sharded(spec, team).model))
        after = {name: like(weight, local(weight).sin()) for name, weight in before.items()}
    blocks = blocks_of(before, rule)
    found = project(before, after, blocks, basis(letter), [min(3, block.size) for block in blocks], seed=9)
    return {
        "coordinates": [each.tolist() for each in found.coordinates],
        "norms": norms(before, after, blocks),
        "rms": root_mean_squares(before, blocks),
        "squares": squared_lengths(before, blocks),
    }


CASES: dict[str, Case] = {"simulated": simulated, "loaded": loaded, "shards": shards, "projected": projected}


def run(case: str, arguments: list[Any]) -> Any:
    try:
        return CASES[case](*arguments)
    except FerretError as error:
        return {"code": error.code, "detail": error.detail}


def main() -> None:
    torch.set_num_threads(1)
    with process_group.started("cpu") as team:
        assert team is not None
        for case, *arguments in json.loads(Path(sys.argv[1]).read_text()):
            found = run(case, arguments)
            if team.is_first:
                sys.stdout.write(json.dumps(found) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
