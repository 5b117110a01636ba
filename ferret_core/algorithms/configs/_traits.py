"""What the rest of Ferret asks of an algorithm: one record, which every ``Config`` gives for its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ferret_core.algorithms.configs._norms import Norms
from ferret_core.models.shapes import Shapes
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.training.config import LocalConfig, ZerothOrderConfig


class Projecting(Protocol):
    """The options of an algorithm that sends coordinates on random directions, which add noise to the update.

    ``guard``: whether a round is refused in which that would be too much for the weights.
    """

    @property
    def guard(self) -> bool: ...
    @property
    def basis(self) -> str: ...
    @property
    def coordinates(self) -> Kind: ...
    @property
    def seeds(self) -> str: ...
    @property
    def local(self) -> LocalConfig: ...
    @property
    def K(self) -> int | None: ...
    @property
    def bytes_per_round(self) -> int | None: ...

    def cut(self, shapes: Shapes) -> Sequence[Block]:
        """The blocks, in the order of the norms' parts."""
        ...

    def total(self, blocks: Sequence[Block]) -> int:
        """K over all of them."""
        ...

    def allocate(self, norms: Sequence[float], blocks: Sequence[Block]) -> Sequence[int]:
        """K_l of every block for an update with these norms."""
        ...

    def expected_norms(self, shapes: Shapes, examples: int | None) -> Norms:
        """Those of a contribution in round 1 of a participant with this number of ``examples``."""
        ...


class Traits(NamedTuple):
    """What an algorithm with its options is like. Everything is off unless its ``Config`` says so.

    ``first_order``, ``zeroth_order``: how participants train, by gradients or by losses alone.

    ``projection``: its options where it sends coordinates on random directions.

    ``dense``: the round's update is one fp32 number for each tuned parameter.

    ``comparable``: all participants' numbers stand for the same directions, so that their median means something; its
    ``Algorithm`` is then :class:`ferret_core.algorithms._base.SharedCoordinates`. ``comparable_with`` is the setting
    under which they would, if there is one.

    ``decodable``: its ``Algorithm`` is :class:`ferret_core.algorithms._base.DecodableUpdate`.

    ``shardable``: a team of processes can run it on a model in shards.

    ``adapts``: the model's own weights are not trained. ``own_shapes``: what is tuned is put into the model when it is
    loaded, and has other shapes than the model's.

    ``corrects_steps``: it changes every local step.

    ``steps_watched_by``: the option by which it looks at the gradient of every local step; empty if none does.

    ``update_told_by``: the option by which it tells something of the update as it was before noise was added; empty if
    none does. ``blind_with`` are the settings under which it tells nothing.
    """

    first_order: LocalConfig | None = None
    zeroth_order: ZerothOrderConfig | None = None
    projection: Projecting | None = None
    dense: bool = False
    comparable: bool = False
    comparable_with: str = ""
    decodable: bool = False
    shardable: bool = False
    adapts: bool = False
    own_shapes: bool = False
    corrects_steps: bool = False
    steps_watched_by: str = ""
    update_told_by: str = ""
    blind_with: str = ""

    @property
    def local(self) -> LocalConfig | ZerothOrderConfig | None:
        """How participants train within a round; None of an algorithm without local steps."""
        return self.first_order or self.zeroth_order
