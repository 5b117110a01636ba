"""Rules for values that exclude each other, between the sections of a specification and with its environment.

Exclusions within one section are in that section's model, and so in its JSON Schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ferret_core.protocol.errors import FerretError, FieldError
from ferret_core.protocol.spec import is_folder
from ferret_core.secure.packing import MOST_WORDS
from ferret_core.secure.roster import MOST_MEMBERS

if TYPE_CHECKING:
    from ferret_core.algorithms.configs.traits import Projecting
    from ferret_core.catalog import ResolvedExperiment
    from ferret_core.protocol.spec import ModelSpec


class Rule(NamedTuple):
    """A rule: an experiment that is ``broken`` in this way is refused.

    ``field`` must change, and ``message``, which follows the field and its value, gives the reason and the replacement.
    """

    field: str | Callable[[ResolvedExperiment], str]
    broken: Callable[[ResolvedExperiment], Any]
    message: str | Callable[[ResolvedExperiment], str]


RANKED = ("median", "trimmed_mean")
"""Values of ``robust.rule`` that rank participants number by number."""
COMPARED = 3
"""Contributions, or sums of groups, that can be compared."""
ALONE = "train it with one process"
PLAIN = "a team moves the model by plain steps"
RECORDS = "the noise that protects records"


def _summing(message: str) -> Callable[[ResolvedExperiment], str]:
    """Returns the message with the ``{option}`` that sums contributions."""
    masked, central = "secure.aggregation = 'masked'", "privacy.mechanism = 'central'"
    return lambda it: message.format(option=masked if it.spec.secure.masked else central)


RULES = (
    Rule(
        "model.revision",
        lambda it: _moves(it.spec.model),
        lambda it: (
            f"is required: model.source = {it.spec.model.source!r} is a name on the hub, where models change: add "
            "model.revision, a commit or tag from the model's page on the hub; a folder is written "
            f"./{it.spec.model.source}"
        ),
    ),
    Rule(
        "robust.rule",
        lambda it: it.spec.robust.rule in RANKED and not it.traits.comparable,
        lambda it: (
            f"needs comparable coordinates, which {it.spec.algorithm.name} does not send here: use "
            + " or ".join(filter(None, ["'clip'", it.traits.comparable_with]))
        ),
    ),
    Rule(
        "robust.rule",
        lambda it: it.spec.robust.rule == "cosine_filter" and it.traits.nonlinear,
        lambda it: (
            f"takes one update out of the round's to compare it with the others, and {it.spec.algorithm.name} does not "
            "add updates up here: use 'clip'"
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
        "server.step_guard",
        lambda it: it.spec.server.step_guard and it.traits.carries_over,
        lambda it: (
            f"shortens a round's step, and the step of {it.spec.algorithm.name} also has the rest of earlier rounds: "
            "use false"
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
    Rule(
        "algorithm.local.precision",
        lambda it: _pure(it) and it.traits.corrects_steps,
        lambda it: (
            f"rounds each step, and {it.spec.algorithm.name} changes the steps by less than bf16 can hold: use "
            "'bfloat16'"
        ),
    ),
    Rule(
        "algorithm.name",
        lambda it: it.spec.summed and it.traits.projection is None and not it.traits.dense,
        _summing(
            "sends neither one-bit coordinates nor whole updates, which {option} cannot sum: use 'ferret', 'fedavg' or "
            "'fedit'"
        ),
    ),
    Rule(
        "algorithm.name",
        lambda it: it.spec.summed and it.traits.dense and _records(it),
        f"sends whole updates, and {RECORDS} is added to coordinates: use 'ferret'",
    ),
    Rule(
        "algorithm.seeds",
        lambda it: (sent := _summed(it)) is not None and sent.seeds != "shared",
        _summing(
            "gives each participant other directions, which {option} cannot sum: use 'shared', with "
            "algorithm.allocation = 'fixed'"
        ),
    ),
    Rule(
        "algorithm.coordinates",
        lambda it: (sent := _summed(it)) is not None and not _records(it) and sent.coordinates not in ("sign", "auto"),
        _summing("is not one bit per coordinate, which {option} cannot sum: use 'sign'"),
    ),
    Rule(
        "algorithm.whole_up_to",
        lambda it: (sent := _summed(it)) is not None and sent.whole_up_to,
        _summing("sends small blocks in full precision, which {option} cannot sum: use 0"),
    ),
    Rule(
        "algorithm.bytes_per_round",
        lambda it: (sent := _summed(it)) is not None and sent.bytes_per_round is not None,
        _summing(
            "counts coordinates on their own, and with {option} they take more bits: set algorithm.K, and see ferret "
            "plan"
        ),
    ),
    Rule(
        "algorithm.local.epochs",
        lambda it: (sent := _summed(it)) is not None and sent.local.epochs is not None,
        _summing(
            "depends on a participant's number of examples, which is not sent with {option}: set algorithm.local.steps"
        ),
    ),
    Rule(
        "server.weights",
        lambda it: it.spec.summed and it.spec.server.weights != "equal",
        _summing("needs the participants' numbers of examples, which are not sent with {option}: use 'equal'"),
    ),
    Rule(
        "robust.rule",
        lambda it: (
            it.spec.secure.masked
            and it.spec.robust.rule in (*RANKED, "cosine_filter")
            and it.spec.secure.groups(_members(it)) < COMPARED
        ),
        lambda it: (
            f"compares contributions, which are masked, or sums of at least {COMPARED} groups: use 'clip', or set "
            f"secure.group, which makes {it.spec.secure.groups(_members(it))} of {_members(it)} participants"
        ),
    ),
    Rule(
        "round.over_selection",
        lambda it: it.spec.summed and it.spec.round.over_selection,
        _summing("is not for {option}, which goes on without participants that drop out: use 0"),
    ),
    Rule(
        "secure.least",
        lambda it: it.spec.secure.masked and _members(it) < it.spec.secure.least,
        lambda it: f"is more than the {_members(it)} participants of a masked sum: invite more",
    ),
    Rule(
        "secure.group",
        lambda it: it.spec.secure.masked and largest_group(it) > MOST_MEMBERS,
        lambda it: (
            f"sums {largest_group(it)} of a round's {_members(it)} participants together, and a masked sum has at most "
            f"{MOST_MEMBERS}: set it to {MOST_MEMBERS} or less"
        ),
    ),
    Rule(
        "secure.group",
        lambda it: _records(it) and it.spec.secure.group,
        f"divides a round into groups, {RECORDS} spreads the noise over all of its participants: use 0",
    ),
    Rule(
        "robust.rule",
        lambda it: it.spec.privacy.central and it.spec.robust.rule in (*RANKED, "cosine_filter"),
        "compares contributions, and privacy.mechanism = 'central' uses only their noised sum: use 'clip'",
    ),
    Rule(
        "secure.aggregation",
        lambda it: _records(it) and not it.spec.summed,
        f"lets the server read each contribution, {RECORDS} adds up under masks: use 'masked', or trust the server's "
        "noise with privacy.mechanism = 'central'",
    ),
    Rule(
        "secure.aggregation",
        lambda it: it.spec.privacy.central and it.spec.secure.masked,
        "hides contributions from the server, which adds the noise to their sum: use 'none', or privacy.mechanism = "
        "'distributed'",
    ),
    Rule(
        "algorithm.coordinates",
        lambda it: (sent := _protected(it)) is not None and sent.coordinates != "float32",
        f"rounds coordinates, but {RECORDS} needs each unit's exact ones: use 'float32'",
    ),
    Rule(
        "algorithm.local.steps",
        lambda it: (sent := _protected(it)) is not None and sent.local.steps != 1,
        f"lets later steps follow a unit, and {RECORDS} is for one gradient of each: use 1",
    ),
    Rule(
        "algorithm.local.accumulation",
        lambda it: (sent := _protected(it)) is not None and sent.local.accumulation * sent.local.batch_size != 1,
        f"and batch_size group sequences, and {RECORDS} needs the gradient of each unit: use 1 for both, privacy.batch "
        "is the number of units in a step",
    ),
    Rule(
        "algorithm.local.optimizer",
        lambda it: (sent := _protected(it)) is not None and (sent.local.optimizer != "normalized"),
        f"does not use the direction of gradients alone, as {RECORDS} does: use 'normalized'",
    ),
    Rule(
        "algorithm.local.momentum",
        lambda it: (sent := _protected(it)) is not None and sent.local.momentum,
        "has no effect in the single step of protected records: use server.momentum",
    ),
    Rule(
        "algorithm.local.optimizer_in_backward",
        lambda it: (sent := _protected(it)) is not None and sent.local.optimizer_in_backward,
        f"holds no whole gradient, and {RECORDS} projects that of each unit: use false",
    ),
)
"""Rules for every experiment."""

SERVICE = (
    Rule(
        "participants.simulated",
        lambda it: it.spec.secure.masked and it.spec.participants.simulated,
        "have no secrets from the service that trains them: use 0 with secure.aggregation = 'masked', or ferret "
        "simulate",
    ),
    Rule(
        "participants.simulated",
        lambda it: it.spec.privacy.central and it.spec.participants.simulated,
        f"have no account of what their records lose, and {RECORDS} is for real participants: use 0, or ferret "
        "simulate",
    ),
)
"""Rules for an experiment of the service."""

SIMULATION = (
    Rule("participants.edge", lambda it: it.spec.participants.edge, "a simulation has no real participants; use 0"),
)
"""Rules for a simulated experiment."""

TEAM = (
    Rule("privacy.unit", lambda it: _records(it), f"needs whole gradients of single units: {ALONE}"),
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
    Rule("robust.rule", lambda it: it.spec.robust.rule == "cosine_filter", "compares whole updates"),
)
"""Rules for weights in files. Nothing is refused: the weights stay in memory."""

OWN_TRAINING = (
    Rule("privacy.unit", lambda it: _records(it), "the noise is for the gradients of single units"),
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


def require_maskable(experiment: ResolvedExperiment, d: int) -> None:
    """Raises ``spec.invalid`` for more tuned weights ``d`` than a mask has words."""
    if experiment.spec.secure.masked and d > MOST_WORDS:
        message = f"sums at most {MOST_WORDS} numbers of a participant, and {d} weights are tuned: use 'none'"
        raise FerretError.of_field("spec.invalid", "secure.aggregation", experiment.spec.secure.aggregation, message)


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


def _moves(model: ModelSpec) -> bool:
    """Returns True for a name on the hub without revision and digest: another model may be there tomorrow."""
    pinned = model.revision is not None or model.digest is not None
    return not pinned and not is_folder(model.source) and not Path(model.source).is_dir()


def _summed(experiment: ResolvedExperiment) -> Projecting | None:
    """Returns the options of coordinates that are summed; None for other contributions."""
    return experiment.traits.projection if experiment.spec.summed else None


def largest_group(experiment: ResolvedExperiment) -> int:
    """Returns the number of participants in the largest group of a masked sum."""
    members = _members(experiment)
    return math.ceil(members / experiment.spec.secure.groups(members))


def _records(experiment: ResolvedExperiment) -> bool:
    return experiment.spec.privacy.of_records


def _protected(experiment: ResolvedExperiment) -> Projecting | None:
    """Returns the options of coordinates in which noise hides single units; None for other contributions."""
    return experiment.traits.projection if _records(experiment) else None


def _members(experiment: ResolvedExperiment) -> int:
    """Returns the number of participants in a round."""
    participants = experiment.spec.participants
    return participants.sample_size(participants.simulated + participants.edge)


def _pure(experiment: ResolvedExperiment) -> bool:
    """Returns True if participants hold no fp32 weights."""
    return experiment.traits.first_order is not None and experiment.traits.first_order.pure
