"""Membership of texts and tokens in one contribution, or in one sum of contributions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ferret_bench._leakage import attack
from ferret_bench._leakage.attack import Knowledge
from ferret_bench._leakage.power import Scores
from ferret_bench._leakage.rounds import Deal, Round, Row, groups
from ferret_core.datasets.tokenization.client_data import Encoded
from ferret_core.models.load import LoadedModel
from ferret_core.protocol.spec import ExperimentSpec

UPDATES = 4 << 30
"""Bytes of updates in memory."""


class Found(NamedTuple):
    """Scores of one draw, for a row of the document."""

    texts: Scores
    tokens: Scores


class Draw(NamedTuple):
    """One draw of texts: the scores of each row, and those without any contribution (``prior``), by size of a sum.

    The prior of a text is the model's loss on it, that of a token its frequency in public texts.
    """

    rows: dict[Row, Found]
    prior: dict[int, Found]


def draw(
    spec: ExperimentSpec, loaded: LoadedModel, dealt: Deal, rows: Sequence[Row], steps: int, say: Callable[[str], None]
) -> Draw:
    """Runs round 1 with every row, and tests every text of ``dealt`` on each update."""
    model: Any = loaded.model
    model.eval()
    known = attack.learn(model, dealt.public)
    say(f"{len(dealt.sites)} sites train {steps} steps")
    sent = [row for row in rows if _sent(row)]
    count = sum(len(groups(len(dealt.sites), row.sites)) for row in sent)
    candidates = dealt.inside + dealt.outside
    with TemporaryDirectory(prefix="ferret-leakage-") as folder:
        played = Round(spec, loaded, dealt.sites, steps, Path(folder))
        say(f"{len(candidates)} texts are tested on {count} updates")
        updates = (update for row in sent for update in played.rebuilt(row))
        texts, tokens, losses = _tested(model, known, updates, count, candidates)
    places = dict[Row, list[list[int]]]()
    for row in rows:
        places[row] = _places(row, len(dealt.sites), places)
    truth = {row.sites: _truth(dealt, row.sites, tokens.shape[1]) for row in rows}
    everything = torch.zeros_like(known.frequency)
    return Draw(
        {
            row: Found(
                _scores(_means(texts, places[row]), truth[row.sites][0]),
                _scores(_means(tokens, places[row]), truth[row.sites][1], known.frequency),
            )
            for row in rows
        },
        {
            sites: Found(
                _scores(-losses.expand(inside.shape), inside),
                _scores(known.frequency.expand(occurs.shape), occurs, everything),
            )
            for sites, (inside, occurs) in truth.items()
        },
    )


def _sent(row: Row) -> bool:
    """True if the row has updates; else it is the mean of another row's."""
    return row.sites == 1 or row.masked


def _tested(
    model: nn.Module, known: Knowledge, updates: Iterable[Tensor], count: int, candidates: Sequence[Encoded]
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the scores of texts and tokens for ``count`` updates, fp32 (count, …), and the losses of the texts."""
    texts, tokens, losses = list[Tensor](), list[Tensor](), torch.empty(0)
    room = torch.empty(max(1, min(count, UPDATES // known.mean.nbytes)), known.mean.numel())
    for part in _filled(room, updates):
        found, losses = attack.text_scores(model, known, part, candidates)
        texts.append(found)
        tokens += [attack.token_scores(model, known, update) for update in part]
    return torch.cat(texts), torch.stack(tokens), losses


def _filled(room: Tensor, updates: Iterable[Tensor]) -> Iterator[Tensor]:
    """Copies updates (d,) to the rows of ``room`` (n, d), and yields the rows in use when it is full, and at the
    end."""
    used = 0
    for update in updates:
        room[used] = update
        used += 1
        if used == len(room):
            yield room
            used = 0
    if used:
        yield room[:used]


def _places(row: Row, sites: int, places: dict[Row, list[list[int]]]) -> list[list[int]]:
    """Returns the updates that a target of the row is the mean of: new ones, or its contributions'."""
    targets = groups(sites, row.sites)
    if _sent(row):
        begin = sum(len(each) for known, each in places.items() if _sent(known))
        return [[begin + target] for target in range(len(targets))]
    alone = places[row._replace(sites=1)]
    return [[alone[site][0] for site in group] for group in targets]


def _truth(dealt: Deal, size: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Returns which candidates are members, and which tokens occur, for each sum of ``size`` sites, bool
    (targets, …)."""
    owners = torch.tensor([site for site, texts in enumerate(dealt.sites) for _ in texts] + [-1] * len(dealt.outside))
    inside, occurs = list[Tensor](), list[Tensor]()
    for group in groups(len(dealt.sites), size):
        inside.append(torch.isin(owners, torch.tensor(list(group))))
        texts: list[Encoded] = [text for site in group for text in dealt.sites[site]]
        occurs.append(attack.occurrences(texts, vocabulary) > 0)
    return torch.stack(inside), torch.stack(occurs)


def _means(values: Tensor, places: list[list[int]]) -> Tensor:
    return torch.stack([values[place].mean(dim=0) for place in places])


def _scores(values: Tensor, members: Tensor, strata: Tensor | None = None) -> Scores:
    kinds = np.zeros(values.shape[1], np.int64) if strata is None else strata.numpy()
    return Scores(values.double().numpy(), members.numpy(), kinds)
