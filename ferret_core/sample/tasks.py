"""The demo's instruction tasks: twelve categories, skewed, every answer given by a rule.

The base model was trained on four of them as instructions (:data:`KNOWN`). For the others its text contains at most the
skill, in plain prose: the federated run must teach their instructions and forms of answer. One of them, the invented
language Zib, is only in the file of the participant at the edge.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _pairs(text: str) -> dict[str, str]:
    """Parses ``one/other`` pairs between blanks."""
    return {name: partner for pair in text.split() for name, _, partner in [pair.partition("/")]}


NAMES = _words(
    "Anna Ben Carla David Emma Felix Greta Hugo Ida Jonas Klara Leo Mia Noah Olga Paul Rosa Sam Tina Uwe Vera Willi "
    "Yara Zoe"
)
PLACES = _words(
    "garden kitchen forest school market park barn library tower valley hall museum harbour meadow castle bakery"
)
COLOURS = _words("red blue green yellow white black brown grey pink purple")
THINGS = _words("ball book lamp chair spoon hammer bottle basket coat drum kite rope bell cup clock pencil")
ANIMALS = _pairs(
    "fox/foxes dog/dogs cat/cats goose/geese mouse/mice wolf/wolves horse/horses owl/owls bear/bears duck/ducks "
    "frog/frogs goat/goats hen/hens rabbit/rabbits snake/snakes swan/swans calf/calves pony/ponies"
)
PAST = _pairs(
    "sees/saw finds/found draws/drew feeds/fed follows/followed hears/heard holds/held catches/caught loves/loved "
    "hides/hid washes/washed meets/met"
)
OPPOSITES = _pairs(
    "big/small young/old fast/slow happy/sad tall/short loud/quiet clean/dirty rich/poor strong/weak wet/dry hot/cold "
    "brave/shy"
)
ADJECTIVES = (*OPPOSITES, *OPPOSITES.values())
NUMBERS = _words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen"
)
KINDS = {"animal": tuple(ANIMALS), "place": PLACES, "thing": THINGS}


class Scene(NamedTuple):
    """Content of one sentence: a person, an action, an animal and a place."""

    name: str
    verb: str
    colour: str
    animal: str
    place: str

    def __str__(self) -> str:
        return f"{self.name} {self.verb} a {self.colour} {self.animal} in the {self.place}."


def scene(rng: Random) -> Scene:
    return Scene(
        rng.choice(NAMES), rng.choice(tuple(PAST)), rng.choice(COLOURS), rng.choice(tuple(ANIMALS)), rng.choice(PLACES)
    )


def words(rng: Random, least: int, most: int) -> list[str]:
    """Draws different words of any kind, ``least`` to ``most`` of them."""
    return rng.sample((*ANIMALS, *COLOURS, *PLACES, *THINGS), rng.randint(least, most))


def article(noun: str) -> str:
    """Returns the noun with ``a`` or ``an`` before it."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


class Task(NamedTuple):
    """One category: its instruction, its share of the data, and ``ask``, which draws an input and its answer."""

    instruction: str
    weight: int
    ask: Callable[[Random], tuple[str, str]]


class Row(NamedTuple):
    """One line of a ``jsonl`` dataset; ``label`` is the category."""

    instruction: str
    input: str
    output: str
    label: str


def repeat(rng: Random) -> tuple[str, str]:
    text = str(scene(rng))
    return text, text


def colour(rng: Random) -> tuple[str, str]:
    told = scene(rng)
    return str(told), told.colour


def opposite(rng: Random) -> tuple[str, str]:
    pair = list(rng.choice(list(OPPOSITES.items())))
    rng.shuffle(pair)
    noun = f"{rng.choice(COLOURS)} {rng.choice(list(ANIMALS))}"
    return f"a {pair[0]} {noun}", f"a {pair[1]} {noun}"


def plural(rng: Random) -> tuple[str, str]:
    item, many = rng.choice(list(ANIMALS.items()))
    colour = rng.choice(COLOURS)
    return f"one {colour} {item}", f"two {colour} {many}"


def reverse(rng: Random) -> tuple[str, str]:
    chosen = words(rng, 2, 4)
    return " ".join(chosen), f"backwards {' '.join(reversed(chosen))}"


def count(rng: Random) -> tuple[str, str]:
    chosen = words(rng, 2, 8)
    return " ".join(chosen), f"There are {NUMBERS[len(chosen)]} words here."


def add(rng: Random) -> tuple[str, str]:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    some, others = rng.sample(list(ANIMALS.values()), 2)
    return f"{NUMBERS[a]} {some} and {NUMBERS[b]} {others}", f"That makes {NUMBERS[a + b]} animals."


def past(rng: Random) -> tuple[str, str]:
    told = scene(rng)
    return str(told), f"It was {told.name} who {PAST[told.verb]} it."


def kind(rng: Random) -> tuple[str, str]:
    kind, members = rng.choice(list(KINDS.items()))
    member = rng.choice(members)
    return f"the {rng.choice(ADJECTIVES)} {member}", f"We call {article(member)} {article(kind)}."


def question(rng: Random) -> tuple[str, str]:
    names, places = rng.sample(NAMES, 2), rng.sample(PLACES, 2)
    asked = rng.randrange(2)
    story = " ".join(f"{name} is in the {place}." for name, place in zip(names, places, strict=True))
    return f"{story} {names[asked]}?", f"look for {names[asked]} in the {places[asked]}"


def record(rng: Random) -> tuple[str, str]:
    told = scene(rng)
    return str(told), f"place {told.place}, animal {told.animal}, colour {told.colour}, name {told.name}"


def zib(rng: Random) -> tuple[str, str]:
    chosen = words(rng, 2, 3)
    return " ".join(chosen), f"zib {' '.join(chosen)} zib"


TASKS: Mapping[str, Task] = {
    "repeat": Task("Repeat the sentence.", 4, repeat),
    "colour": Task("Name the colour.", 6, colour),
    "opposite": Task("Say the opposite.", 4, opposite),
    "plural": Task("Write it for two.", 4, plural),
    "reverse": Task("Turn the words around.", 8, reverse),
    "count": Task("Count the words.", 10, count),
    "add": Task("Add the numbers.", 10, add),
    "past": Task("Tell who did it.", 8, past),
    "kind": Task("What do we call it?", 12, kind),
    "question": Task("Where should we look?", 10, question),
    "record": Task("Fill in the form.", 14, record),
    "zib": Task("Say it in Zib.", 10, zib),
}
KNOWN = ("repeat", "colour", "opposite", "plural")
HELD_OUT = {name: task.weight for name, task in TASKS.items()}
TRAIN = {name: weight for name, weight in HELD_OUT.items() if name != "zib"}
EDGE = {"zib": 10, "record": 1, "reverse": 1}


def row(rng: Random, category: str) -> Row:
    task = TASKS[category]
    return Row(task.instruction, *task.ask(rng), category)


def rows(rng: Random, count: int, weights: Mapping[str, int], taken: set[Row]) -> list[Row]:
    """Returns ``count`` rows that are not in ``taken``, with categories drawn by ``weights``."""
    found: list[Row] = []
    while len(found) < count:
        drawn = row(rng, *rng.choices(list(weights), list(weights.values())))
        if drawn not in taken:
            found.append(drawn)
    return found


def write(folder: Path, *, seed: int = 0, train: int = 3000, test: int = 512, edge: int = 400) -> None:
    """Writes ``train.jsonl``, ``test.jsonl`` and ``edge.jsonl`` into ``folder``; no test row is in the other two."""
    rng = Random(seed)
    held_out = rows(rng, test, HELD_OUT, set())
    _write(folder / "test.jsonl", held_out)
    _write(folder / "train.jsonl", rows(rng, train, TRAIN, set(held_out)))
    _write(folder / "edge.jsonl", rows(rng, edge, EDGE, set(held_out)))


def _write(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in rows), encoding="utf-8")
