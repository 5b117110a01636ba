"""One file per subject. A command imports what it needs when it runs, so that ``ferret --help`` is quick."""
