"""Upper bounds of the values in a specification, so that none can request endless work.

They are far beyond any real experiment: models of 10¹² parameters, 100,000 participants, a round of a year. Values
within them may still exceed a machine's memory; then that experiment alone fails, when it tries.
``tests/security/test_specification_bounds.py`` fails for a field without a bound.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MAX_ROUNDS = 1_000_000
MAX_ELEMENTS = 2**40
"""Elements of a model, or of what represents it."""
MAX_BYTES = 2**40
MAX_PART_BYTES = 64 << 20
"""Bytes of one part of an upload, which a site holds in memory while it sends it."""
MAX_EXAMPLES = 10**9
LEAST_DEVELOPMENT = 4
MAX_DEVELOPMENT = 1024
"""Sequences that a round is measured on before it counts: fewer are meaningless, more take longer than the round."""
MAX_SEQUENCES = 65_536
"""Sequences in one pass through a model, or in one step."""
MAX_STEPS = 1_000_000
MAX_EPOCHS = 10_000.0
MAX_WIDTH = 65_536
"""Maximum rank, length or width of an adapter."""
MAX_SECONDS = 366 * 24 * 3600.0
MAX_LEASE_SECONDS = 31 * 24 * 3600.0
MAX_REAL = 1e30
"""Maximum of rates, weights and distances: products of larger values overflow fp32."""
MAX_LABELS = 1_000_000

Label = Annotated[str, Field(max_length=256)]
"""Name of a field, a label or a layer."""
Source = Annotated[str, Field(min_length=1, max_length=4096)]
Path = Annotated[str, Field(min_length=1, max_length=4096, json_schema_extra={"format": "path"})]
HubName = Annotated[str, Field(min_length=1, max_length=256)]
Revision = Annotated[str, Field(min_length=1, max_length=256)]
