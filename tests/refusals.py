"""What a test expects of a refusal: its code, and the field, value or place that its message names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from ferret_core.protocol.errors import FerretError


@contextmanager
def refused(code: str, *named: str) -> Generator[pytest.ExceptionInfo[FerretError]]:
    """Expects a :class:`FerretError` with this code, whose message contains each of ``named``."""
    with pytest.raises(FerretError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    assert [part for part in named if part not in str(caught.value)] == [], caught.value
