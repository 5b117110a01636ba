"""The embedded service in one file: ``ferret backup`` and ``ferret restore``."""
