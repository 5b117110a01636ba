"""``python3 -m scripts.secrets``: creates the passwords that ``docker-compose.yml`` reads from ``./secrets``.

Containers run as separate users, so the files are readable. The folder is not: only its owner and Docker can enter it.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "secrets"


def made() -> dict[str, str]:
    """Returns the text of every file, with random passwords."""
    postgres, redis = secrets.token_hex(32), secrets.token_hex(32)
    return {
        "postgres_password": postgres,
        "database_url": f"postgresql+psycopg://ferret:{postgres}@postgres:5432/ferret",
        "redis_password": redis,
        "broker_url": f"redis://:{redis}@redis:6379/0",
        "admin_token": secrets.token_urlsafe(32),
    }


def main(folder: Path = FOLDER) -> int:
    """Writes the files. An existing folder stays as it is, because the databases use its passwords."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        sys.stderr.write(f"{folder} exists and stays as it is\n")
        return 1
    for name, text in made().items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o444)
    sys.stdout.write(f"wrote {folder}; the admin token is in {folder / 'admin_token'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
