"""How a code is spelt."""

from __future__ import annotations

import pytest

from ferret_core.protocol.resources.participants import EnrolmentCode
from tests.refusals import refused

SECRET = "XyargC12mqFRF9l5qsBqBsdbeCZAAbcT3AhDp3BylOE"


def test_a_code_names_its_server_and_keeps_its_whole_secret() -> None:
    text = str(EnrolmentCode.of("4f1c09ab", SECRET))
    assert text == f"4f1c.{SECRET}"
    code = EnrolmentCode.read(text)
    assert code == ("4f1c", SECRET)
    assert not code.names_another("4f1c09ab")
    assert code.names_another("4f1d09ab")


@pytest.mark.parametrize("text", [SECRET, f"4f1c{SECRET}", f"4F1C.{SECRET}", f".{SECRET}", "4f1c.", "", "4f1c.a\nb"])
def test_what_names_no_server_is_no_code(text: str) -> None:
    with refused("enrolment.invalid", "4 hexadecimal digits and a dot"):
        EnrolmentCode.read(text)
