"""The error of a refused set-up."""

from __future__ import annotations


class Refusal(Exception):
    """An error with the reason and the next step in its message."""
