"""Your own JSON Lines file: one object per line with an instruction, an input and an output, or a conversation.

Files may be gzipped (``.gz``). A relative path is used unchanged. Field names are configurable, so that a file need not
be rewritten; ``input`` and ``label`` may be missing from single lines. If ``output`` is a list of answers, training
uses the first, and a score the best match. ``messages`` is a conversation as in Hugging Face TRL, objects with ``role``
(system, user, assistant) and ``content``: training uses its last answer, after all earlier messages. Without a ``test``
file, ``test_share`` of the different texts is held out: the ones with the smallest BLAKE3 digests, see
``_validation_split.py``.
"""

from __future__ import annotations

from itertools import islice

from pydantic import Field

from ferret_core.datasets._json import read_lines
from ferret_core.datasets._record import Names, examples_of, invalid
from ferret_core.datasets._validation_split import divide_by_rank
from ferret_core.datasets.base import Example
from ferret_core.protocol import limits
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.rounding import ceil_share
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """The files, and the names of their fields."""

    train: limits.Path = Field(description="JSON Lines file to train on, plain or .gz")
    test: limits.Path | None = Field(default=None, description="JSON Lines file of held-out examples")
    test_share: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="Share of the texts in train to hold out without a test file; 0 holds out nothing",
    )
    instruction: limits.Label = Field(default="instruction", min_length=1, description="Field of the instruction")
    input: limits.Label = Field(default="input", min_length=1, description="Field of the input; lines may lack it")
    output: limits.Label = Field(
        default="output", min_length=1, description="Field of the answer, or of a list of accepted ones"
    )
    messages: limits.Label = Field(
        default="messages",
        min_length=1,
        description="Field of a conversation, a list of messages with role and content, in lines without instruction",
    )
    label: limits.Label = Field(
        default="label", min_length=1, description="Field of the label, the key of skewed partitions"
    )
    train_limit: int | None = Field(
        default=None,
        ge=1,
        le=limits.MAX_EXAMPLES,
        description="Use only the first n training examples",
        json_schema_extra={"unit": "examples"},
    )
    test_limit: int | None = Field(
        default=None,
        ge=1,
        le=limits.MAX_EXAMPLES,
        description="Use only the first n held-out examples",
        json_schema_extra={"unit": "examples"},
    )


class Dataset:
    """The examples of one or two files."""

    def __init__(self, config: Config, unit: str | None = None) -> None:
        self.config = config
        self._unit = unit

    def with_units(self, field: str) -> Dataset:
        return Dataset(self.config, field)

    def train(self) -> list[Example]:
        """Returns all lines of ``train`` that are not held out; raises ``dataset.invalid``."""
        if self.config.test is not None:
            return self._read(self.config.train, "dataset.train", self.config.train_limit, self._unit)
        return self._split()[0][: self.config.train_limit]

    def test(self) -> list[Example]:
        """Returns the lines of ``test``, or the held-out ones of ``train``; raises ``dataset.invalid``."""
        if self.config.test is not None:
            return self._read(self.config.test, "dataset.test", self.config.test_limit, unit=None)
        if not self.config.test_share:
            message = "nothing is held out: set dataset.test, or a test_share above 0"
            raise FerretError.of_field("dataset.invalid", "dataset.test_share", self.config.test_share, message)
        return self._split()[1][: self.config.test_limit]

    def _split(self) -> tuple[list[Example], list[Example]]:
        """Returns training and held-out examples in the order of lines; at least one of each, if any is held out."""
        config = self.config
        examples = self._read(config.train, "dataset.train", None, self._unit)
        if not config.test_share:
            return examples, []
        return divide_by_rank(examples, self._held_out)

    def _held_out(self, texts: int) -> int:
        """Returns the number of texts to hold out; raises ``dataset.invalid`` for a single one."""
        if texts < 2:
            message = "has no two different examples, so none to hold out: add some, or set test"
            raise invalid("dataset.train", self.config.train, message)
        return min(ceil_share(self.config.test_share, texts), texts - 1)

    def _read(self, path: str, option: str, limit: int | None, unit: str | None) -> list[Example]:
        config = self.config
        names = Names(config.instruction, config.input, config.output, config.label, config.messages, unit)
        return examples_of(islice(read_lines(path, option), limit), names)
