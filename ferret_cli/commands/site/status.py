"""``ferret site status``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options

if TYPE_CHECKING:
    from ferret_sdk.participant.membership_files import Kept, Piece
    from ferret_sdk.participant.privacy_budget import Budget
    from ferret_sdk.participant.site_terms import Terms


def status(
    terms: Annotated[
        Path | None, typer.Option("--terms", metavar="site.toml", help="This site's terms; default: FERRET_HOME's.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what this site takes part in, what it has sent and spent, what lies on disk, and its terms.

    It asks no server.
    """
    from ferret_cli.error_output import advising
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import emit
    from ferret_sdk.participant.membership_files import memberships, pieces, receipts
    from ferret_sdk.participant.privacy_budget import Budget
    from ferret_sdk.participant.site_terms import of_home, read
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    with advising(NEXT_STEPS):
        own = of_home(home) if terms is None else read(terms)
        found, lying = memberships(home), [*pieces(home), *receipts(home)]
        budget = None if own.privacy is None else Budget(home, own.privacy)
        if json:
            emit(_document(found, lying, own, budget))
        else:
            _show(found, lying, own, budget)


def _document(found: list[Kept], lying: list[Piece], own: Terms, budget: Budget | None) -> dict[str, object]:
    return {
        "memberships": [
            {
                "experiment": kept.member.experiment,
                "name": kept.member.name,
                "display_name": kept.member.display_name,
                "url": kept.member.url,
                "ended": kept.ended,
                "rounds": kept.rounds,
                "last_round": kept.round or None,
                **kept.spent.model_dump(mode="json", include={"seconds", "bytes"}),
            }
            for kept in found
        ],
        "disk": [{**piece._asdict(), "path": str(piece.path)} for piece in lying],
        "terms": own.model_dump(mode="json"),
        "privacy": None
        if budget is None
        else {"epsilon": budget.epsilon(budget.spent()), "contributions_left": budget.left()},
    }


def _show(found: list[Kept], lying: list[Piece], own: Terms, budget: Budget | None) -> None:
    from ferret_cli.joining import budget_in_words
    from ferret_cli.output import say, table
    from ferret_core.protocol.formatting import size

    table(
        ("experiment", "name", "server", "state", "rounds sent", "last round", "trained", "sent"),
        (
            (
                kept.member.experiment,
                kept.member.display_name,
                kept.member.url,
                kept.ended or "goes on",
                kept.rounds,
                kept.round or None,
                f"{kept.spent.seconds / 3600:.2f} h",
                size(kept.spent.bytes),
            )
            for kept in found
        ),
    )
    print()
    table(("on disk", "experiment", "name", "size", "path"), ((*_row(piece), piece.path) for piece in lying))
    say(f"{len(found)} memberships, {size(sum(piece.size for piece in lying))} on disk")
    say("terms:", own.model_dump_json(exclude_defaults=True) if own.model_fields_set else "none")
    if budget is not None:
        say(f"privacy: {budget_in_words(budget)}")


def _row(piece: Piece) -> tuple[object, ...]:
    from ferret_core.protocol.formatting import size

    return piece.what, piece.experiment, piece.participant or None, size(piece.size)
