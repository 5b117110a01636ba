"""``ferret site clean``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def clean(
    experiment: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]…", help="Leave these experiments, also if they go on; default: those that ended."
        ),
    ] = None,
    base_models: Annotated[
        bool, typer.Option("--base-models", help="Also base models that are in use: they are downloaded again.")
    ] = False,
    yes: options.Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    json: options.Json = False,
) -> None:
    """Delete what this site keeps of experiments that ended: base models, spools, memberships.

    The log of what was sent, the receipts and the privacy budget stay. Without --yes it asks.
    """
    from ferret_cli.error_output import advising
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import emit, say, table
    from ferret_core.protocol.errors import FerretError
    from ferret_core.protocol.formatting import size
    from ferret_sdk.participant import membership_files
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    with advising(NEXT_STEPS):
        every = membership_files.memberships(home)
        for id in experiment or []:
            if id not in {one.member.experiment for one in every}:
                message = "this site does not take part in it; see ferret site status"
                raise FerretError.of_field("experiment.not_found", "experiment", id, message)
        wanted = [
            one for one in every if (one.member.experiment in experiment if experiment else one.ended is not None)
        ]
        found = list(membership_files.pieces(home, wanted))
        if base_models:
            known = {piece.path for piece in found}
            found += [piece for piece in membership_files.base_models(home) if piece.path not in known]
        total = sum(piece.size for piece in found)
        if found and not json:
            rows = ((piece.what, piece.experiment, piece.participant or None, size(piece.size)) for piece in found)
            table(("delete", "experiment", "name", "size"), rows)
        if found and not dry_run:
            if not yes:
                typer.confirm(f"Delete these {len(found)} things, {size(total)}?", abort=True, err=True)
            membership_files.remove(home, found, lambda piece: None)
    say(f"{'would delete' if dry_run else 'deleted'} {len(found)} things, {size(total)}")
    if json:
        listed = [{**piece._asdict(), "path": str(piece.path)} for piece in found]
        emit({"deleted": listed, "bytes": total, "dry_run": dry_run})
