"""What a test expects of a refusal: its code, the first field that it is about, and what its message names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from ferret_core.protocol.errors import FerretError


@contextmanager
def refused(code: str, *named: str, field: str | None = None) -> Generator[pytest.ExceptionInfo[FerretError]]:
    """Expects a :class:`FerretError` with this code, whose message contains each of ``named``; and with this field, if
    one is given."""
    with pytest.raises(FerretError) as caught:
        yield caught
    assert caught.value.code == code, caught.value
    assert [part for part in named if part not in str(caught.value)] == [], caught.value
    if field is not None:
        assert caught.value.errors[0].field == field
