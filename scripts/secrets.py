"""``python3 -m scripts.secrets``: the passwords that ``docker-compose.yml`` and ``docker-compose.rabbitmq.yml`` read
from ``./secrets``, made once.

Containers run as users of their own, so the files are readable; the folder is not, and only its owner and Docker get
through it.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "secrets"


def made() -> dict[str, str]:
    """The text of every file, with fresh passwords."""
    postgres, redis, rabbitmq = (secrets.token_hex(32) for _ in range(3))
    return {
        "postgres_password": postgres,
        "database_url": f"postgresql+psycopg://ferret:{postgres}@postgres:5432/ferret",
        "redis_password": redis,
        "broker_url": f"redis://:{redis}@redis:6379/0",
        "rabbitmq_password": rabbitmq,
        "rabbitmq_url": f"amqp://ferret:{rabbitmq}@rabbitmq:5672/ferret",
        "admin_token": secrets.token_urlsafe(32),
    }


def main(folder: Path = FOLDER) -> int:
    """Writes the files; leaves a folder that is there alone, because the databases know its passwords."""
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
