"""``ferret simulate FILE``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say
from ferret_cli.requirements_check import require_training

if TYPE_CHECKING:
    from ferret_core.simulate import SimulationResult


def simulate(
    file: options.SpecFile,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    preset: options.Preset = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the final checkpoint here.", show_default=False)
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; default: all.")] = None,
    site: options.SiteFile = None,
    json: options.Json = False,
) -> None:
    """Run the experiment in FILE in this process, without a server.

    The model is the same, bit for bit, as that of a server that runs FILE on the CPU. FERRET_DEVICE=cpu leaves a GPU
    alone. Under torchrun all its processes hold one model together: torchrun --nproc-per-node 4 -m ferret_cli simulate.
    """
    from ferret_cli import spec_input
    from ferret_cli.round_progress import HEADER

    require_training()

    from ferret_core import catalog
    from ferret_sdk.service.download import require_empty

    spec = spec_input.load(file, assignments or (), unset or (), preset)
    catalog.resolve(spec)  # a contradiction is answered before torch loads, which takes seconds
    if out is not None:
        require_empty(out, "--out")

    import torch

    from ferret_cli import hooks_file
    from ferret_cli.simulation_output import document, facts, line
    from ferret_core.distributed.barrier import together
    from ferret_core.distributed.process_group import started
    from ferret_core.replica.export import complete
    from ferret_core.simulate import simulate
    from ferret_core.system.device import chosen_device

    if threads is not None:
        torch.set_num_threads(threads)
    own = None if site is None else hooks_file.load(site)
    with started(chosen_device().type) as team:
        speaks = team is None or team.is_first

        def tell(text: str) -> None:
            if speaks:
                say(text)

        def run() -> SimulationResult:
            return simulate(spec, out, on_round=lambda done: tell(str(line(done, spec.rounds))), site=own)

        tell(HEADER)
        result = run() if team is None else together(team, "simulation", run, lambda found: found.digest)
    if not speaks:
        return
    if out is not None:
        complete(out, facts(spec, result))
    if result.stopped:
        say(result.stopped.detail)
    if result.decline:
        say(result.decline.detail)
    if json:
        emit(document(result, out))
    else:
        print(result.digest)
