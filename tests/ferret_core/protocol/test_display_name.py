"""Names that people give sites, and the ids made of them."""

from __future__ import annotations

import re
import unicodedata

import pytest

from ferret_core.protocol import display_name
from tests.refusals import refused


@pytest.mark.parametrize(
    "name",
    [
        "clinic-7",
        "Universitätsklinikum Aßlar",
        "مستشفى الأمل",
        "بیمارستان می\u200cخواهم",
        "בית חולים",
        "協和醫院",
        "👩🏽\u200d⚕️",
        "é" * 200,
    ],
)
def test_letters_of_every_script_are_kept_as_they_are(name: str) -> None:
    assert display_name.checked("name", f" {unicodedata.normalize('NFD', name)}\n") == unicodedata.normalize(
        "NFC", name
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "no letter"),
        (" \t", "no letter"),
        ("\u200d.", "no letter"),
        ("x" * 201, "has 201 characters; shorten it to 200"),
        ("a\x1b[2Jb", "U+001B at 2"),
        ("two\nlines", "U+000A at 4"),
        *(
            (f"a{chr(override)}b", f"U+{override:04X} at 2")
            for override in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
        ),
    ],
)
def test_what_is_no_name_is_told_with_its_value_and_the_next_step(name: str, reason: str) -> None:
    with refused("request.invalid", reason) as caught:
        display_name.checked("--name", name)
    (error,) = caught.value.errors
    assert (caught.value.code, error.field) == ("request.invalid", "--name")
    assert re.search("give the name|shorten it|leave it out", error.message)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("Clinic_7.b", "Clinic_7.b"),
        ("Universitätsklinikum Aßlar", "universitatsklinikum-asslar"),
        ("St. Mary’s, Łódź", "st-marys-lodz"),
        ("../up", "up"),
        ("北京 Hospital 1", "hospital-1"),
        ("x" * 200, "x" * 48),
    ],
)
def test_an_id_says_what_it_can_of_the_name(name: str, id: str) -> None:
    assert display_name.ids(name)[0] == id


def test_names_without_a_latin_letter_have_ids_of_their_own() -> None:
    ids = [display_name.ids(name) for name in ("協和醫院", "مستشفى الأمل", "🏥")]
    assert all(len(each) == 1 and re.fullmatch("site-[0-9a-f]{8}", each[0]) for each in ids)
    assert len({each[0] for each in ids}) == 3
