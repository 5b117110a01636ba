"""A round's contributions as they lie in the storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ferret_core.contribution import Sealed, stored
from ferret_core.rounds.cost import numbers_sent
from ferret_core.storage import FileKind, Storage, blob_location


class FrozenContributions:
    """The contributions with these digests, in participant order, read anew each time and each checked against its
    digest; a large one is not held but mapped. ``between`` is called after each is read, and may raise to stop.
    ``numbers`` says how many each holds."""

    def __init__(
        self, storage: Storage, digests: Mapping[str, str], between: Callable[[], None] = lambda: None
    ) -> None:
        self._storage = storage
        self._digests = dict(sorted(digests.items()))
        self._between = between
        self.numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[Sealed]:
        for participant, digest in self._digests.items():
            sealed = stored(self._storage.view(blob_location(FileKind.CONTRIBUTION, digest), digest), digest)
            self._between()
            self.numbers[participant] = numbers_sent(sealed.contribution)
            yield sealed
