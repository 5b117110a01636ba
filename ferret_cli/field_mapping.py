"""``--field instruction=question``: what a site's own data call the fields of an example."""

from __future__ import annotations

from collections.abc import Sequence

from ferret_core.protocol.errors import FerretError


def names_of(given: Sequence[str]) -> dict[str, str]:
    """Our names with theirs; ``request.invalid`` for what is not two names, and for a field that is given twice."""
    names: dict[str, str] = {}
    for pair in given:
        ours, equals, theirs = pair.partition("=")
        if not equals or ours in names:
            message = "give each field once, as OURS=YOURS, such as instruction=question"
            raise FerretError.of_field("request.invalid", "--field", pair, message)
        names[ours] = theirs
    return names
