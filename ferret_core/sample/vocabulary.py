"""The small world of the demo's text: its words and sentences."""

from __future__ import annotations

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
