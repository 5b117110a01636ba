"""Limits per client: request rates, poll intervals and concurrent uploads."""
