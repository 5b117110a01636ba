"""Names of sites: a display name in any script for people, and an id derived from it for paths and the ledger."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import ParticipantName
from ferret_core.protocol.sanitize import shown

LONGEST = 200
"""Maximum number of characters of a display name."""
_ID = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LATIN = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "'": "", "’": ""})
"""Letters that no Unicode normalisation decomposes."""
_LONGEST_SLUG = 48
_SUFFIX = 8


def normal(text: str) -> str:
    """Returns the display name in NFC (Unicode Standard Annex 15), stripped; raises ``ValueError`` if it is invalid."""
    return readable(text, LONGEST, "give the name that people know the site by")


def readable(text: str, longest: int, advice: str) -> str:
    """Normalises a short text for people like :func:`normal`; ``advice`` ends the error about one without a letter."""
    name = unicodedata.normalize("NFC", text).strip()
    if not any(unicodedata.category(character)[0] in "LNS" for character in name):
        raise ValueError(f"has no letter, digit or symbol; {advice}")
    if len(name) > longest:
        raise ValueError(f"has {len(name)} characters; shorten it to {longest}")
    for character in name:
        if shown(character) != character:
            raise ValueError(f"holds the invisible U+{ord(character):04X} at {name.index(character) + 1}; leave it out")
    return name


def checked(field: str, text: str) -> str:
    """Normalises the display name in ``field``; raises ``request.invalid``."""
    try:
        return normal(text)
    except ValueError as error:
        raise FerretError.of_field("request.invalid", field, text, str(error)) from error


def ids(display_name: str) -> list[ParticipantName]:
    """Returns possible ids for a display name, the preferred one first. A name that is a valid id stays unchanged.

    Others are reduced to lower-case Latin letters and digits. The second id ends with a digest of the whole name, for
    names that differ only in characters that an id cannot hold.
    """
    if _ID.fullmatch(display_name):
        return [display_name]
    latin = display_name.casefold().translate(_LATIN)
    plain = unicodedata.normalize("NFKD", latin).encode("ascii", "ignore").decode()
    slug = "-".join(re.findall("[a-z0-9]+", plain))[:_LONGEST_SLUG].rstrip("-")
    suffix = digest_bytes(display_name.encode())[:_SUFFIX]
    return [slug, f"{slug}-{suffix}"] if slug else [f"site-{suffix}"]


DisplayName = Annotated[
    str,
    AfterValidator(normal),
    Field(
        description="Display name of the site, in any script", json_schema_extra={"minLength": 1, "maxLength": LONGEST}
    ),
]
