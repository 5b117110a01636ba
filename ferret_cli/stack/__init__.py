"""The process tree of ``ferret serve``: broker, API and workers as children of one supervisor."""
