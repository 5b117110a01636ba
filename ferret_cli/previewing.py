"""What ``ferret join --dry-run`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ferret_cli.joining import watching
from ferret_cli.output import emit, say, table
from ferret_core.client.hooks import Site
from ferret_core.protocol.formatting import size
from ferret_sdk.participant.participant import Participant


def show_preview(
    participant: Participant, data: Path, fields: Mapping[str, str], site: Site | None, *, json: bool
) -> None:
    """Trains once and prints every part of the request that would send the contribution; nothing is sent."""
    with watching(json) as (watcher, _, _):
        preview = participant.preview(data, watcher, fields=fields, site=site)
    if json:
        emit({**preview._asdict(), "parts": [part._asdict() for part in preview.parts]})
    else:
        table(("place", "name", "type", "bytes", "value"), preview.parts)
    body = f"{size(preview.size)}, BLAKE3 {preview.digest}"
    say(f"this is the whole request: {preview.method} {preview.path}, a body of {body}")
    if preview.norm is not None:
        say(f"the vector had L2 norm {preview.norm:.4g} before it was clipped and noised; that stays here")
    say("nothing of it was sent. Your place is kept: the same command without --dry-run takes part")
