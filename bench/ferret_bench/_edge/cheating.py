"""``ferret join`` of a site that releases a wrong share, once, in a sum that can do without its shares."""

from __future__ import annotations

from typing import Any

from ferret_cli.main import main
from ferret_core.secure.member import Member, Released
from ferret_sdk.participant import secure_sums


def cheat() -> None:
    """Flips a bit of the first message of this kind."""
    put = secure_sums.SecureSums._put
    honest = True

    def put_wrong(self: Any, path: str, message: bytes, headers: dict[str, str] | None = None) -> None:
        nonlocal honest
        if path.endswith("/unmask") and honest and _spare(self._member()):
            honest, message = False, bytes([message[0] ^ 1]) + message[1:]
        put(self, path, message, headers)

    secure_sums.SecureSums._put = put_wrong


def _spare(member: Member) -> bool:
    attempt = member.attempt
    return isinstance(attempt, Released) and len(attempt.survivors) > attempt.roster.threshold


if __name__ == "__main__":
    cheat()
    main()
