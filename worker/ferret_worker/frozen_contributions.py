"""A round's contributions in the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ferret_core.contribution import SealedContribution, decode_stored
from ferret_core.rounds.cost import numbers_sent
from ferret_core.storage import FileKind, Storage, blob_location


class FrozenContributions:
    """The contributions with these digests, in participant order, read again on each use and checked against the
    digests.

    A large one is memory-mapped. ``between`` is called after each is read, and may raise to stop. ``numbers`` holds the
    number of values in each.
    """

    def __init__(
        self, storage: Storage, digests: Mapping[str, str], between: Callable[[], None] = lambda: None
    ) -> None:
        self._storage = storage
        self._digests = dict(sorted(digests.items()))
        self._between = between
        self.numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[SealedContribution]:
        for participant, digest in self._digests.items():
            sealed = decode_stored(self._storage.view(blob_location(FileKind.CONTRIBUTION, digest), digest), digest)
            self._between()
            self.numbers[participant] = numbers_sent(sealed.contribution)
            yield sealed
