"""``ferret site init``"""

from __future__ import annotations

TERMS = """\
# What this site agrees to, whatever a server asks for. docs/site-terms.md explains every line.

[allow]
algorithms = ["ferret"]
models = []              # replace this line by [[allow.models]] tables: ferret join names source and digest
participants = 3         # fewest in a round, this site included
examples = 32            # fewest examples that a contribution is computed from
whole_blocks = false     # a contribution holds no block of the model whole

[limits]
steps = 100              # local steps in a round
sequences = 2000         # steps × batch × accumulation
share = 0.1              # coordinates for each weight of a block
hours_per_day = 12       # of training
hours = 200              # of training, in the whole experiment
memory_gb = 16           # of this machine's memory, in units of 10⁹ bytes
bytes_per_round = 65536  # of a contribution
bytes = 10000000         # of all contributions to the experiment
"""


def init() -> None:
    """Write careful terms to FERRET_HOME/site.toml, for you to read and change. An existing file stays as it is.

    `ferret join` then refuses every model until you name it in the file.
    """
    from ferret_cli.error_output import advising
    from ferret_cli.joining import NEXT_STEPS
    from ferret_cli.output import say
    from ferret_core.protocol.errors import FerretError
    from ferret_core.system.atomic_files import write_durably
    from ferret_core.system.permissions import keep_private
    from ferret_sdk.participant.site_terms import FILE
    from ferret_sdk.service.server_address import ClientSettings

    home = ClientSettings().home.expanduser()
    path = home / FILE
    with advising(NEXT_STEPS):
        if path.exists():
            raise FerretError.of_field("request.invalid", "site.toml", str(path), "exists: change it by hand")
        keep_private(home)
        write_durably(path, TERMS.encode())
    say(f"{path} is written: read it, and change what this site agrees to")
