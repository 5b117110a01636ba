"""``python -m ferret_cli`` is ``ferret``."""

from ferret_cli.main import main

main()
