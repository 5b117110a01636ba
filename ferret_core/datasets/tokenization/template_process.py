"""A process that renders a chat template within limits: a template is a program, and may never end.

``python -m ferret_core.datasets.tokenization.template_process`` reads one JSON document on stdin and writes the
rendered texts as JSON to stdout. transformers runs the template in a sandbox without access to files or Python's
objects.
"""

from __future__ import annotations

import json
import sys

SECONDS = 1.0
"""Processor time for rendering. Templates in use take milliseconds."""
MEMORY = 2 << 30
"""Bytes of address space; the loading library takes about half a gigabyte."""
LONGEST = 1 << 20
"""Characters of all rendered texts."""
TOO_LONG = 3
"""Exit status for longer texts."""


def main() -> None:
    asked = json.load(sys.stdin)
    from transformers.utils.chat_template_utils import render_jinja_template

    limit()
    conversations = [[{"role": "user", "content": question}] for question in asked["questions"]]
    texts, _ = render_jinja_template(
        conversations, chat_template=asked["template"], add_generation_prompt=True, **asked["special_tokens"]
    )
    if sum(map(len, texts)) > LONGEST:
        sys.exit(TOO_LONG)
    json.dump(texts, sys.stdout)


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
