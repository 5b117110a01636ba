"""A participant's own examples: read here, never sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Choice

if TYPE_CHECKING:
    from ferret_core.datasets._base import Example


def read_examples(path: Path) -> list[Example]:
    """The participant's own examples; ``dataset.invalid`` names the file, the line and the field."""
    from ferret_core import catalog

    everything = Choice.model_validate({"name": "jsonl", "train": str(path), "test_share": 0})
    try:
        return catalog.dataset(everything).train()
    except FerretError as error:
        # There is no specification here in which ``dataset.train`` could be looked up.
        told = [field.model_copy(update={"field": "data"}) for field in error.errors]
        raise FerretError.of_fields(error.code, told) if told else error from error
