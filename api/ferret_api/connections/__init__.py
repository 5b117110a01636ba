"""Connections below HTTP: how many there may be, which one gives way, and how long each may take."""
