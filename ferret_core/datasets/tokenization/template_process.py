"""A process that renders a chat template within limits: a template is a program, and may never end.

``python -m ferret_core.datasets.tokenization.template_process`` reads one JSON document on stdin and writes the text of
each conversation as JSON to stdout, null for one that the template rejects. transformers runs the template in a sandbox
without access to files or Python's objects.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, tzinfo
from functools import partial

SECONDS = 1.0
"""Processor time for rendering. Templates in use take milliseconds."""
MEMORY = 2 << 30
"""Bytes of address space; the loading library takes about half a gigabyte."""
LONGEST = 1 << 20
"""Characters of all rendered texts."""
TODAY = datetime(2024, 7, 26)
"""The date for templates that write today's: the prompt must be the same on every day and machine. Llama 3's templates
take this date where they know none."""
TOO_LONG = 3
"""Exit status for longer texts."""


def main() -> None:
    asked = json.load(sys.stdin)
    from transformers.utils import chat_template_utils

    chat_template_utils.datetime = FixedDate
    limit()
    rendered = partial(
        chat_template_utils.render_jinja_template,
        chat_template=asked["template"],
        **asked["special_tokens"],
    )
    texts: list[str | None] = []
    for conversation in asked["conversations"]:
        try:
            texts += rendered([conversation], add_generation_prompt=conversation[-1]["role"] != "assistant")[0]
        except Exception:
            texts.append(None)
    if sum(len(text) for text in texts if text is not None) > LONGEST:
        sys.exit(TOO_LONG)
    json.dump(texts, sys.stdout)


class FixedDate(datetime):
    """The clock of chat templates (``strftime_now``)."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> FixedDate:
        return cls.fromtimestamp(TODAY.timestamp(), tz)


def limit() -> None:
    """Sets the limits of this process, except on Windows, where only its parent's time limit applies."""
    if sys.platform == "win32":
        return
    import resource
    import signal

    signal.setitimer(signal.ITIMER_PROF, SECONDS)  # its signal ends the process
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
