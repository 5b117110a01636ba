"""The base model's training text: plain prose about the small world, and the known tasks as instructions.

The prose contains the skills behind most of the other tasks (counting, adding, reversing, …) in different words, as a
real base model has read about its later instructions.
"""

from __future__ import annotations

from random import Random

from ferret_core.sample.tasks import KNOWN, TASKS, Row, row
from ferret_core.sample.vocabulary import (
    ADJECTIVES,
    ANIMALS,
    KINDS,
    NAMES,
    NUMBERS,
    PAST,
    PLACES,
    article,
    scene,
    words,
)

KNOWN_SHARE = 0.35
OPEN_SHARE = 0.05
OPEN = ("Say something.", "Tell me more.", "Go on.", "What else?")


def reversal(rng: Random) -> str:
    chosen = words(rng, 2, 4)
    return f"{' '.join(chosen)}, and backwards {' '.join(reversed(chosen))}."


def counting(rng: Random) -> str:
    chosen = words(rng, 2, 8)
    return f"{' '.join(chosen)}: {NUMBERS[len(chosen)]} words."


def sums(rng: Random) -> str:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    some, others = rng.sample(list(ANIMALS.values()), 2)
    return f"{NUMBERS[a]} {some} with {NUMBERS[b]} {others} are {NUMBERS[a + b]} in all."


def yesterday(rng: Random) -> str:
    told = scene(rng)
    return f"{told} So {told.name} {PAST[told.verb]} the {told.animal}, {told.colour}, from the {told.place}."


def kinds(rng: Random) -> str:
    kind, members = rng.choice(list(KINDS.items()))
    return f"The {rng.choice(ADJECTIVES)} {rng.choice(members)} is {article(kind)}."


def whereabouts(rng: Random) -> str:
    homes = list(zip(rng.sample(NAMES, 2), rng.sample(PLACES, 2), strict=True))
    told = " ".join(f"{name} is in the {place}." for name, place in homes)
    return f"{told} So {' and '.join(f'look for {name} in the {place}' for name, place in rng.sample(homes, 2))}."


def echo(rng: Random) -> str:
    chosen = " ".join(words(rng, 2, 5))
    return f"{chosen}, again {chosen}."


def story(rng: Random) -> str:
    return " ".join(str(scene(rng)) for _ in range(rng.randint(1, 3)))


def talk(rng: Random) -> str:
    told = scene(rng)
    return rng.choice(
        (
            f"There are {rng.choice(NUMBERS[2:])} {rng.choice(list(ANIMALS.values()))} here.",
            f"That makes {told.name} {rng.choice(ADJECTIVES)}.",
            f"We call the {told.animal} {told.name}.",
            f"It was {told.name} who came to the {told.place}.",
            f"Look at the {told.colour} {told.animal}.",
        )
    )


PROSE = {reversal: 4, whereabouts: 4, echo: 2, yesterday: 2, counting: 1, sums: 1, kinds: 1, story: 1, talk: 1}


def document(rng: Random) -> Row | str:
    """Draws one known task, one open request or one piece of prose."""
    draw = rng.random()
    if draw < KNOWN_SHARE:
        return row(rng, rng.choice(KNOWN))
    if draw < KNOWN_SHARE + OPEN_SHARE:
        return Row(rng.choice(OPEN), " ".join(words(rng, 1, 3)), talk(rng), "open")
    return rng.choices(list(PROSE), list(PROSE.values()))[0](rng)


def vocabulary(rng: Random, each: int) -> list[str]:
    """Returns text for the tokenizer: ``each`` rows of every task, so that prompts are short, and as many pieces of
    prose."""
    asked = [row(rng, name) for name in TASKS for _ in range(each)]
    prose = [piece(rng) for piece in PROSE for _ in range(each)]
    return [
        *OPEN,
        *prose,
        *(field for example in asked for field in (example.instruction, example.input, example.output)),
    ]
