"""Federated full-parameter tuning at kilobytes per round: a whole experiment without a server."""

__version__ = "0.1.0"
