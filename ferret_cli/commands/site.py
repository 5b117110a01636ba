"""``ferret site …``: a site's own terms, data, service, log and files, all without a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import advising, emit, say, show_line, table
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size

if TYPE_CHECKING:
    from ferret_sdk.participant.membership import DiskItem, MembershipFiles
    from ferret_sdk.participant.privacy_budget import Budget
    from ferret_sdk.participant.receipts import Outcome
    from ferret_sdk.participant.record_account import RecordTotals
    from ferret_sdk.participant.site_terms import Terms

app = typer.Typer(help="A site that takes part: its own data and machine.", no_args_is_help=True)


TERMS = """\
# What this site agrees to, for any request of a server. docs/sites/site-terms.md explains every line.

[allow]
algorithms = ["ferret"]
models = []              # replace this line by [[allow.models]] tables: ferret join names source and digest
participants = 3         # fewest in a round, this site included
examples = 32            # fewest examples that a contribution is computed from
whole_blocks = false     # a contribution holds no block of the model whole

[limits]
steps = 100              # local steps in a round
sequences = 2000         # steps × batch × accumulation
share = 0.1              # coordinates for each weight of a block
hours_per_day = 12       # of training
hours = 200              # of training, in the whole experiment
memory_gb = 16           # of this machine's memory, in units of 10⁹ bytes
bytes_per_round = 65536  # of a contribution
bytes = 10000000         # of all contributions to the experiment

[secure]
require = false          # true: only sums, in which the server cannot read this site's contribution
peers = []               # identities of other sites, as `ferret site key` prints them there
peers_required = 0       # fewest of them in a sum
least = 3                # fewest participants in a sum, this site included
"""


@app.command("init", epilog="Example: ferret site init")
def init(json: options.Json = False) -> None:
    """Write careful terms to FERRET_HOME/site.toml, for you to read and change. An existing file stays as it is.

    `ferret join` then refuses every model until you name it in the file.
    """
    from ferret_cli.join_display import NEXT_STEPS
    from ferret_core.system.atomic_files import write_durably
    from ferret_core.system.permissions import restrict_home
    from ferret_sdk.participant.site_terms import FILE
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    path = home / FILE
    with advising(NEXT_STEPS):
        if path.exists():
            raise FerretError.of_field("request.invalid", "site.toml", str(path), "exists: change it by hand")
        restrict_home(home)
        write_durably(path, TERMS.encode())
    say(f"{path} is written: read it, and change what this site agrees to")
    if json:
        emit({"path": str(path)})


@app.command("key", epilog="Example: ferret site key")
def key(json: options.Json = False) -> None:
    """Show this site's identity, which signs all that it sends. It is made at the first use.

    Other sites pin it under `[secure] peers` in their site.toml. Give it to them by phone or letter, not through the
    server.
    """
    from ferret_cli.join_display import NEXT_STEPS
    from ferret_core.protocol.signatures import public_key
    from ferret_core.system.permissions import restrict_home
    from ferret_sdk.participant.membership import site_key
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    with advising(NEXT_STEPS):
        restrict_home(home)
        identity = public_key(site_key(home))
    if json:
        emit({"identity": identity})
    else:
        print(identity)


@app.command("check", epilog="Example: ferret site check letters.jsonl --field instruction=question")
def check(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Your examples, as `ferret join --data` has them.")
    ],
    field: options.Fields = None,
    json: options.Json = False,
) -> None:
    """Read your examples as `ferret join` would, without a code and without a server.

    It names the broken line or the missing field, and shows no content of the file.
    """
    from ferret_cli.join_display import NEXT_STEPS
    from ferret_sdk.participant.local_examples import read_examples

    with advising(NEXT_STEPS):
        examples = read_examples(file, options.field_names(field or []))
    longest = max(len(example.output) for example in examples)
    without = sum(not example.input for example in examples)
    counted = f"{len(examples)} examples, {without} without an input"
    show_line(f"{counted}; the longest answer has {longest} characters", as_json=json)
    if json:
        emit({"examples": len(examples), "without_input": without, "longest_answer": longest})


@app.command(
    "install",
    epilog="Example: ferret site install hearts -- https://ferret.example.org --data letters.jsonl --code-file code",
    context_settings={"allow_extra_args": True},
)
def install(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name for the service, such as the experiment's.")],
    kind: Annotated[
        str | None,
        typer.Option("--kind", help="systemd, launchd or windows; default: what this system has.", show_default=False),
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the file and write nothing.")] = False,
    json: options.Json = False,
) -> None:
    """Write a service file that runs `ferret join` with the arguments after `--`, from this folder, also after a
    restart.

    Give the code by --code-file: it must not be in the service file. Nothing is started.
    """
    from ferret_cli.os_service import KINDS, place, requested, start, usual, write

    chosen = _known_kind(kind or usual(), list(KINDS))
    service = requested(name, context.args)
    text = KINDS[chosen](service)
    if show:
        shown = text.decode("utf-16" if text.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8")
        if json:
            emit({"kind": chosen, "file": shown})
        else:
            print(shown, end="")
        return
    file = write(Path.home() / place(chosen, name), text)
    say(f"{file} is written; it starts with:\n  {start(chosen, name)}")
    if json:
        emit({"path": str(file), "kind": chosen, "start": start(chosen, name)})


def _known_kind(kind: str, kinds: list[str]) -> str:
    if kind not in kinds:
        raise typer.BadParameter(f"{kind!r} is unknown; choose one of {', '.join(kinds)}", param_hint="--kind")
    return kind


@app.command("log", epilog="Example: ferret site log")
def log(
    all: Annotated[bool, typer.Option("--all", help="Also requests without a body: questions and downloads.")] = False,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="NUMBER:HASH", help="A head that you noted earlier: the log must go on from it."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show and verify the log of all uploads of this site, with the result of each contribution.

    A contribution is acknowledged until the record of its round arrives; then it has a receipt, or it was left out. The
    command contacts no server. Store the printed head elsewhere: with --head it proves that no earlier entry was
    changed or cut off.
    """
    from ferret_cli.join_display import NEXT_STEPS
    from ferret_core.protocol.audit import Head
    from ferret_sdk.participant.egress_log import SentLog, verify
    from ferret_sdk.participant.receipts import outcomes
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    sent_log = SentLog(home)
    with advising(NEXT_STEPS):
        end = verify(sent_log, None if head is None else Head.parse(head))
        found = outcomes(home)
    shown = [sent for sent in sent_log.read() if all or sent.size]
    outcome = {sent.number: found.get(sent.contribution or "") for sent in shown}
    if json:
        requests = [
            {**sent.model_dump(mode="json"), "outcome": (known := outcome[sent.number]) and known._asdict()}
            for sent in shown
        ]
        emit({"path": str(sent_log.path), "head": str(end), "requests": requests})
    else:
        table(
            ("number", "time", "participant", "request", "bytes", "BLAKE3 of the body", "round", "outcome"),
            (
                (
                    sent.number,
                    f"{sent.time.astimezone():%Y-%m-%d %H:%M:%S}",
                    sent.participant,
                    f"{sent.method} {sent.url}",
                    sent.size,
                    sent.digest,
                    sent.round,
                    _outcome_in_words(outcome[sent.number]),
                )
                for sent in shown
            ),
        )
    total = sum(sent.size for sent in shown)
    show_line(f"{end.number} requests, {size(total)} in bodies; the chain is unbroken. Its head is {end}", as_json=json)


def _outcome_in_words(outcome: Outcome | None) -> str | None:
    if outcome is None:
        return None
    return outcome.state if outcome.reason is None else f"{outcome.state}: {outcome.reason}"


@app.command("status", epilog="Example: ferret site status")
def status(
    terms: Annotated[
        Path | None, typer.Option("--terms", metavar="site.toml", help="This site's terms; default: FERRET_HOME's.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show this site's experiments, its uploads and spent budget, its files on disk, and its terms.

    It contacts no server.
    """
    from ferret_cli.join_display import NEXT_STEPS, records_in_words
    from ferret_sdk.participant.membership import memberships, pieces, receipts
    from ferret_sdk.participant.privacy_budget import Budget
    from ferret_sdk.participant.record_account import accounts
    from ferret_sdk.participant.site_terms import of_home, read
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    with advising(NEXT_STEPS):
        own = of_home(home) if terms is None else read(terms)
        found, lying = memberships(home), [*pieces(home), *receipts(home)]
        budget = None if own.privacy is None else Budget(home, own.privacy)
        if json:
            emit(_status_document(found, lying, own, budget, accounts(home)))
        else:
            _show_status(found, lying, own, budget)
            for experiment, totals in accounts(home).items():
                show_line(f"records in {experiment}: {records_in_words(totals)}")


def _status_document(
    found: list[MembershipFiles],
    lying: list[DiskItem],
    own: Terms,
    budget: Budget | None,
    records: Mapping[str, RecordTotals],
) -> dict[str, object]:
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
        "records": {experiment: totals._asdict() for experiment, totals in records.items()},
    }


def _show_status(found: list[MembershipFiles], lying: list[DiskItem], own: Terms, budget: Budget | None) -> None:
    from ferret_cli.join_display import budget_in_words

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
    table(
        ("on disk", "experiment", "name", "size", "path"),
        ((piece.what, piece.experiment, piece.participant or None, size(piece.size), piece.path) for piece in lying),
    )
    print()
    show_line(f"{len(found)} memberships, {size(sum(piece.size for piece in lying))} on disk")
    terms = own.model_dump_json(exclude_defaults=True) if own.model_fields_set else "none"
    show_line(f"terms: {terms}")
    if budget is not None:
        show_line(f"privacy: {budget_in_words(budget)}")


@app.command("clean", epilog="Example: ferret site clean --dry-run")
def clean(
    experiment: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]…", help="Leave these experiments, even running ones; default: ended experiments."
        ),
    ] = None,
    base_models: Annotated[
        bool, typer.Option("--base-models", help="Also base models that are in use: they are downloaded again.")
    ] = False,
    yes: options.Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    json: options.Json = False,
) -> None:
    """Delete this site's files of ended experiments: base models, spools, memberships.

    The log of uploads, the receipts and the privacy budget stay. Without --yes it prompts for confirmation.
    """
    from ferret_cli.join_display import NEXT_STEPS
    from ferret_sdk.participant import membership
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    with advising(NEXT_STEPS):
        every = membership.memberships(home)
        for id in experiment or []:
            if id not in {one.member.experiment for one in every}:
                message = "this site does not take part in it; see ferret site status"
                raise FerretError.of_field("experiment.not_found", "experiment", id, message)
        wanted = [
            one for one in every if (one.member.experiment in experiment if experiment else one.ended is not None)
        ]
        found = list(membership.pieces(home, wanted))
        if base_models:
            known = {piece.path for piece in found}
            found += [piece for piece in membership.base_models(home) if piece.path not in known]
        total = sum(piece.size for piece in found)
        if found and not json:
            rows = ((piece.what, piece.experiment, piece.participant or None, size(piece.size)) for piece in found)
            table(("delete", "experiment", "name", "size"), rows)
        if found and not dry_run:
            if not yes:
                typer.confirm(f"Delete these {len(found)} things, {size(total)}?", abort=True, err=True)
            membership.remove(home, found, lambda piece: None)
    deleted = "would delete" if dry_run else "deleted"
    show_line(f"{deleted} {len(found)} things, {size(total)}", as_json=json)
    if json:
        listed = [{**piece._asdict(), "path": str(piece.path)} for piece in found]
        emit({"deleted": listed, "bytes": total, "dry_run": dry_run})
