"""A site's own code for training, and for measuring a model on its data; the same in a simulation and at the edge.

::

    site = Site()

    @site.train
    def train(model, examples, context):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        for step, batch in enumerate(context.batches(), start=1):
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            context.on_step(step)
        return loss.item()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ferret_core import catalog, compatibility, discovery
from ferret_core.catalog import ResolvedExperiment
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import PluginChoice

if TYPE_CHECKING:
    from torch import nn

    from ferret_core.datasets.base import Example
    from ferret_core.training.custom_training import TrainingContext

    Function = Callable[[nn.Module, Sequence[Example], TrainingContext], float | None]

Given = TypeVar("Given", bound="Function")


class Site:
    """The functions of one site, which replace Ferret's own; functions that are not given stay Ferret's.

    Both are called as ``function(model, examples, context)`` with a causal language model of ``transformers`` in fp32,
    the site's examples (``instruction``, ``input``, ``output``, and ``turns`` of a conversation) and a
    :class:`ferret_core.training.custom_training.TrainingContext`.
    """

    def __init__(self) -> None:
        self.trains: Function | None = None
        self.evaluates: Function | None = None

    def train(self, function: Given) -> Given:
        """Registers the function that moves ``model`` in place, and returns its mean training loss or None.

        Ferret sends the contribution that follows from the trained model, by the experiment's algorithm.
        """
        self.trains = _only("train", self.trains, function)
        return function

    def evaluate(self, function: Given) -> Given:
        """Registers the function that returns the loss of the round's model on this site's data, before training.

        It is called without gradients, and reported as ``participant_eval_loss``.
        """
        self.evaluates = _only("evaluate", self.evaluates, function)
        return function

    def require(self, experiment: ResolvedExperiment) -> None:
        """Raises ``training.unsupported`` where the site trains itself and the algorithm cannot take that."""
        problems = compatibility.problems(experiment, compatibility.OWN_TRAINING)
        if self.trains is None or not problems:
            return
        field, value, reason = problems[0].field, problems[0].value, problems[0].message
        message = f"cannot take a site's own training: {reason}. Leave it out, or ask for one of {_takers(experiment)}"
        raise FerretError.of_field("training.unsupported", field, value, message)


def _takers(experiment: ResolvedExperiment) -> str:
    """The algorithms that would take a site's own training in this experiment, by their defaults."""
    found: list[str] = []
    for name in discovery.names(catalog.PACKAGES["algorithms"]):
        other = ResolvedExperiment.of(experiment.spec.model_copy(update={"algorithm": PluginChoice(name=name)}))
        if not compatibility.problems(other, compatibility.OWN_TRAINING):
            found.append(name)
    return ", ".join(found)


def _only(name: str, before: Function | None, function: Given) -> Given:
    if before is not None:
        raise TypeError(f"a site has one function to {name}: {before!r} is it already")
    if not callable(function):
        raise TypeError(f"@site.{name} takes a function, not {function!r}")
    return function
