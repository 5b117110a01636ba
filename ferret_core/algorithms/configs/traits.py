"""Traits of an algorithm needed by the rest of Ferret: one record, which every ``Config`` gives for its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from ferret_core.algorithms.configs.norms import Norms
from ferret_core.models.shapes import Shapes
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.protocol.wire import Array, Contribution
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
    def coordinates(self) -> Literal["auto", Kind]: ...
    @property
    def seeds(self) -> str: ...
    @property
    def whole_up_to(self) -> int: ...
    @property
    def local(self) -> LocalConfig: ...
    @property
    def K(self) -> int | None: ...
    @property
    def bytes_per_round(self) -> int | None: ...

    def cut(self, shapes: Shapes) -> Sequence[Block]:
        """Returns the blocks, in the order of the norms' parts."""
        ...

    def encoding(self, blocks: Sequence[Block]) -> Kind:
        """Returns the encoding of the coordinates of these blocks, which ``auto`` leaves open."""
        ...

    def decoded(self, contribution: Contribution, blocks: Sequence[Block]) -> tuple[Kind, Sequence[Array]]:
        """Returns the precision and the coordinates of every block of a contribution, or of a masked sum's mean."""
        ...

    def total(self, blocks: Sequence[Block]) -> int:
        """Returns K over all blocks."""
        ...

    def allocate(self, norms: Sequence[float], blocks: Sequence[Block]) -> Sequence[int]:
        """Returns K_l of every block for an update with these norms."""
        ...

    def expected_sent(self, blocks: Sequence[Block]) -> Sequence[int]:
        """Returns the expected number of sent coordinates of every block, the largest or all, for an update in which
        every weight moves alike."""
        ...

    def sent_in(self, contribution: Contribution, blocks: Sequence[Block]) -> Sequence[int]:
        """Returns the number of coordinates of every block that a contribution holds."""
        ...

    def expected_norms(self, shapes: Shapes, examples: int | None) -> Norms:
        """Returns the norms of a contribution in round 1 of a participant with this number of ``examples``."""
        ...


class Traits(NamedTuple):
    """Traits of an algorithm with its options. Everything is off unless its ``Config`` declares it.

    ``first_order``, ``zeroth_order``: local training by gradients or by losses alone.

    ``projection``: its options if it sends coordinates on random directions.

    ``dense``: a contribution and the round's update are one fp32 number for each tuned parameter, and nothing else.

    ``sparse``: a contribution holds some entries of the update, or fewer numbers made from them.

    ``comparable``: all participants' numbers stand for the same directions, so that their median means something; its
    ``Algorithm`` is then :class:`ferret_core.algorithms.base.SharedCoordinates`. ``comparable_with`` is the setting
    under which they would, if there is one.

    ``directions``: the number of directions that participants share, if all updates are in the space of these.

    ``nonlinear``: the round's update is not the weighted mean of the updates that the contributions give one by one.

    ``carries_over``: a round's step also has the rest of earlier rounds, which the round's rate does not scale.

    ``counts_whole``: participants remember a contribution as if it counted whole, so no bound on norms may scale it.

    ``participant_vectors``: fp32 vectors as long as the update that a participant holds while it trains, such as its
    error memory. ``aggregation_vectors``: as many that the sum of the contributions and the round's step hold at once.

    ``decodable``: its ``Algorithm`` is :class:`ferret_core.algorithms.base.DecodableUpdate`.

    ``shardable``: a team of processes can run it on a model in shards.

    ``adapts``: the model's own weights are not trained. ``own_shapes``: the tuned parameters are added to the model
    when it is loaded, and have other shapes than the model's.

    ``public_examples``: number of examples that the server sets aside, from which the algorithm takes bases before the
    first round; its ``Algorithm`` is then :class:`ferret_core.algorithms.base.StartsFromPublicText`.

    ``corrects_steps``: it changes every local step.

    ``steps_watched_by``: the option that makes it use the gradient of every local step; empty without one.

    ``update_told_by``: the option that makes it reveal information on the update before noise was added; empty without
    one. ``blind_with`` has the settings under which it reveals nothing.
    """

    first_order: LocalConfig | None = None
    zeroth_order: ZerothOrderConfig | None = None
    projection: Projecting | None = None
    dense: bool = False
    sparse: bool = False
    comparable: bool = False
    comparable_with: str = ""
    directions: Callable[[Shapes], int] | None = None
    nonlinear: bool = False
    carries_over: bool = False
    counts_whole: bool = False
    participant_vectors: int = 0
    aggregation_vectors: int = 3
    decodable: bool = False
    shardable: bool = False
    adapts: bool = False
    own_shapes: bool = False
    public_examples: int = 0
    corrects_steps: bool = False
    steps_watched_by: str = ""
    update_told_by: str = ""
    blind_with: str = ""

    @property
    def local(self) -> LocalConfig | ZerothOrderConfig | None:
        """The local training within a round; None for an algorithm without local steps."""
        return self.first_order or self.zeroth_order

    @property
    def needs_whole_gradients(self) -> list[str]:
        """The settings to change, except local ones, so that no whole gradients of a local step are needed."""
        corrected = ["an algorithm that does not change gradients"] if self.corrects_steps else []
        return [*corrected, f"another {self.steps_watched_by}"] if self.steps_watched_by else corrected
