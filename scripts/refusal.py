"""Why set-up does nothing."""

from __future__ import annotations


class Refusal(Exception):
    """The message names what is wrong and the next step."""
