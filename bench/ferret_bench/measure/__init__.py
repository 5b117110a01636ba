"""Measurements of all benchmarks: time, memory, and the machine."""
