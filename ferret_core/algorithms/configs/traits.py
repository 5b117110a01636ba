"""Traits of an algorithm needed by the rest of Ferret: one record, which every ``Config`` gives for its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ferret_core.algorithms.configs.norms import Norms
from ferret_core.models.shapes import Shapes
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.training.config import LocalConfig, ZerothOrderConfig


class Projecting(Protocol):
    """The options of an algorithm that sends coordinates on random directions, which add noise to the update.

    ``refuse_noisy_rounds``: True refuses a round with too much noise for the weights.
    """

    @property
    def refuse_noisy_rounds(self) -> bool: ...
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
        """Returns the blocks, in the order of the norms' parts."""
        ...

    def total(self, blocks: Sequence[Block]) -> int:
        """Returns K over all blocks."""
        ...

    def allocate(self, norms: Sequence[float], blocks: Sequence[Block]) -> Sequence[int]:
        """Returns K_l of every block for an update with these norms."""
        ...

    def expected_norms(self, shapes: Shapes, examples: int | None) -> Norms:
        """Returns the norms of a contribution in round 1 of a participant with this number of ``examples``."""
        ...


class Traits(NamedTuple):
    """Traits of an algorithm with its options. Everything is off unless its ``Config`` declares it.

    ``first_order``, ``zeroth_order``: local training by gradients or by losses alone.

    ``projection``: its options if it sends coordinates on random directions.

    ``dense``: the round's update is one fp32 number for each tuned parameter.

    ``comparable``: all participants' numbers stand for the same directions, so that their median means something; its
    ``Algorithm`` is then :class:`ferret_core.algorithms.base.SharedCoordinates`. ``comparable_with`` is the setting
    under which they would, if there is one.

    ``decodable``: its ``Algorithm`` is :class:`ferret_core.algorithms.base.DecodableUpdate`.

    ``shardable``: a team of processes can run it on a model in shards.

    ``adapts``: the model's own weights are not trained. ``own_shapes``: the tuned parameters are added to the model
    when it is loaded, and have other shapes than the model's.

    ``corrects_steps``: it changes every local step.

    ``steps_watched_by``: the option that makes it use the gradient of every local step; empty without one.

    ``update_told_by``: the option that makes it reveal information on the update before noise was added; empty without
    one. ``blind_with`` has the settings under which it reveals nothing.
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
        """The local training within a round; None for an algorithm without local steps."""
        return self.first_order or self.zeroth_order
