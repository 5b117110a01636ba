"""Problems of an endpoint as its ``responses``, grouped by status."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ferret_api.http.errors import MEDIA_TYPE
from ferret_api.schemas import REF
from ferret_core.protocol.errors import PROBLEMS

CODES = "x-problem-codes"

Responses = dict[int | str, dict[str, Any]]


def problems(*codes: str) -> Responses:
    """Returns the ``responses`` of an endpoint that raises these codes."""
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[PROBLEMS[code].status].append(code)
    return {
        status: {
            "description": "\n".join(f"`{code}`: {PROBLEMS[code].title}." for code in found),
            "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}},
            CODES: found,
        }
        for status, found in by_status.items()
    }
