"""One file per command. Each imports what it needs when it runs, so that ``ferret --help`` is quick."""
