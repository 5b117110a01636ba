"""Rules for values that exclude each other, between the sections of a specification and with its environment.

Exclusions within one section are in that section's model, and so in its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_core.protocol.errors import FerretError, FieldError

if TYPE_CHECKING:
    from ferret_core.catalog import ResolvedExperiment


class Rule(NamedTuple):
    """A rule: an experiment that is ``broken`` in this way is refused.

    ``field`` must change, and ``message``, which follows the field and its value, gives the reason and the replacement.
    """

    field: str | Callable[[ResolvedExperiment], str]
    broken: Callable[[ResolvedExperiment], Any]
    message: str | Callable[[ResolvedExperiment], str]


RANKED = ("median", "trimmed_mean")
"""Values of ``robust.rule`` that rank participants number by number."""
ALONE = "train it with one process"
PLAIN = "a team moves the model by plain steps"

RULES = (
    Rule(
        "robust.rule",
        lambda it: it.spec.robust.rule in RANKED and not it.traits.comparable,
        lambda it: (
            f"needs comparable coordinates, which {it.spec.algorithm.name} does not send here: use "
            + " or ".join(filter(None, ["'clip'", it.traits.comparable_with]))
        ),
    ),
    Rule(
        "server.weights",
        lambda it: it.spec.robust.rule in RANKED and it.spec.server.weights != "equal",
        lambda it: (
            f"robust.rule = {it.spec.robust.rule!r} counts all participants the same: use 'equal', or robust.rule = "
            "'clip'"
        ),
    ),
    Rule(
        "stopping.metric",
        lambda it: (
            it.spec.stopping.patience is not None
            and it.spec.stopping.metric != "eval_loss"
            and not it.spec.evaluation.generate_examples
        ),
        "answers are generated for it: set evaluation.generate_examples to at least 1, or judge by eval_loss",
    ),
    Rule(
        "server.average_from",
        lambda it: (it.spec.server.average_from or 0) > it.spec.rounds,
        lambda it: f"is after the last of {it.spec.rounds} rounds: use an earlier one",
    ),
    Rule(
        "server.average_from",
        lambda it: it.spec.server.average != "tail" and 0 < (it.spec.server.average_from or 0) <= it.spec.rounds,
        "is for server.average = 'tail': set that, or leave this out",
    ),
    Rule(
        "algorithm.local.precision",
        lambda it: _pure(it) and it.traits.adapts,
        lambda it: (
            f"is for training the model's own weights, which {it.spec.algorithm.name} leaves alone: use 'bfloat16'"
        ),
    ),
    Rule(
        "algorithm.local.precision",
        lambda it: _pure(it) and not it.traits.adapts and it.spec.model.dtype != "bfloat16",
        lambda it: f"trains the model in its own type, which is {it.spec.model.dtype}: set model.dtype = 'bfloat16'",
    ),
)
"""Rules for every experiment."""

SIMULATION = (
    Rule("participants.edge", lambda it: it.spec.participants.edge, "a simulation has no real participants; use 0"),
)
"""Rules for a simulated experiment."""

TEAM = (
    Rule(
        "algorithm.name", lambda it: it.traits.adapts, f"tunes adapters, which a team does not hold in shards: {ALONE}"
    ),
    Rule("algorithm.name", lambda it: not it.traits.shardable, f"needs the whole model in one process: {ALONE}"),
    Rule(
        lambda it: it.traits.steps_watched_by,
        lambda it: it.traits.steps_watched_by,
        f"looks at whole gradients: choose another, or {ALONE}",
    ),
    Rule(
        "algorithm.local.optimizer_in_backward",
        lambda it: it.traits.first_order is not None and it.traits.first_order.optimizer_in_backward,
        f"a team steps after the backward pass: set it to false, or {ALONE}",
    ),
    Rule("model.dtype", lambda it: it.spec.model.dtype != "float32", 'a team holds fp32 weights: choose "float32"'),
    Rule("server.optimizer", lambda it: it.spec.server.optimizer != "sgd", f'{PLAIN}: choose "sgd", or {ALONE}'),
    Rule("server.momentum", lambda it: it.spec.server.momentum, f"{PLAIN}: set it to 0, or {ALONE}"),
    Rule(
        "robust.rule",
        lambda it: it.spec.robust.rule == "cosine_filter",
        f"compares whole updates: choose another rule, or {ALONE}",
    ),
)
"""Rules for a model held by several processes in shards."""

FILES = (
    Rule("algorithm.name", lambda it: not it.traits.shardable, "needs the whole model"),
    Rule("server.optimizer", lambda it: it.spec.server.optimizer != "sgd", "keeps moments of every weight"),
    Rule("server.momentum", lambda it: it.spec.server.momentum, "keeps a moment of every weight"),
    Rule("server.average", lambda it: it.spec.server.average != "none", "keeps a mean of every weight"),
    Rule("robust.rule", lambda it: it.spec.robust.rule == "cosine_filter", "compares whole updates"),
)
"""Rules for weights in files. Nothing is refused: the weights stay in memory."""

OWN_TRAINING = (
    Rule(
        "algorithm.name", lambda it: it.traits.first_order is None, "it sends the loss along its own random directions"
    ),
    Rule(
        "algorithm.name",
        lambda it: it.traits.steps_watched_by,
        "with these options it uses the gradient of every local step",
    ),
    Rule("algorithm.name", lambda it: it.traits.corrects_steps, "it changes every local step"),
)
"""Rules for a site with its own training function. The message explains why the algorithm must do the training.
"""

PRIVACY_BUDGET = (
    Rule(
        "prompt.template",
        lambda it: it.spec.prompt.template == "chat",
        "comes with the model; under a privacy budget use a template of Ferret's: paper, alpaca or dolly",
    ),
    Rule(
        lambda it: it.traits.update_told_by,
        lambda it: it.traits.update_told_by,
        lambda it: f"follows the update before it is noised; this site's privacy budget allows {it.traits.blind_with}",
    ),
)
"""Rules for an experiment with a site that has a privacy budget."""


def problems(experiment: ResolvedExperiment, rules: Iterable[Rule] = RULES) -> list[FieldError]:
    """Returns the broken ``rules``, in order."""
    return [_problem(rule, experiment) for rule in rules if rule.broken(experiment)]


def require(experiment: ResolvedExperiment, rules: Iterable[Rule], code: str) -> None:
    """Raises ``code`` about the first of the ``rules`` that the experiment breaks."""
    for problem in problems(experiment, rules):
        raise FerretError.of_fields(code, [problem])


def _problem(rule: Rule, experiment: ResolvedExperiment) -> FieldError:
    field, message = (said if isinstance(said, str) else said(experiment) for said in (rule.field, rule.message))
    return FieldError(field=field, value=_value(experiment, field), message=message)


def _value(experiment: ResolvedExperiment, field: str) -> Any:
    """Returns the experiment's value at ``field``; the options of an algorithm are the resolved ones."""
    section, _, path = field.partition(".")
    chosen = section == "algorithm" and path != "name"
    value: Any = experiment.config if chosen else getattr(experiment.spec, section)
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _pure(experiment: ResolvedExperiment) -> bool:
    """Returns True if participants hold no fp32 weights."""
    return experiment.traits.first_order is not None and experiment.traits.first_order.pure
