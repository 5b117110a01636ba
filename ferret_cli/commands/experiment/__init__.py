"""``ferret experiment …``"""

from __future__ import annotations

import typer

from ferret_cli.commands.experiment import (
    approve,
    archive,
    cancel,
    clone,
    codes,
    delete,
    edit,
    enrol,
    export,
    export_metrics,
    extend,
    list,
    participants,
    pause,
    receipt,
    replay,
    resume,
    revoke,
    show,
    verify,
    watch,
)

experiment = typer.Typer(help="List, follow and manage the experiments on a server.", no_args_is_help=True)
experiment.command("list")(list.list_experiments)
experiment.command("show")(show.show)
experiment.command("watch")(watch.watch)
experiment.command("pause")(pause.pause)
experiment.command("resume")(resume.resume)
experiment.command("extend")(extend.extend)
experiment.command("cancel")(cancel.cancel)
experiment.command("clone")(clone.clone)
experiment.command("edit")(edit.edit)
experiment.command("archive")(archive.archive)
experiment.command("unarchive")(archive.unarchive)
experiment.command("delete")(delete.delete)
experiment.command("export")(export.export)
experiment.command("export-metrics")(export_metrics.export_metrics)
experiment.command("verify")(verify.verify)
experiment.command("replay")(replay.replay)
experiment.command("receipt")(receipt.receipt)
experiment.command("enrol")(enrol.enrol)
experiment.command("participants")(participants.participants)
experiment.command("approve")(approve.approve)
experiment.command("refuse")(approve.refuse)
experiment.command("revoke")(revoke.revoke)
experiment.command("codes")(codes.codes)
experiment.command("revoke-code")(codes.revoke_code)
