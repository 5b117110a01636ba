"""The parts of ``ferret_bench/projection.py``."""
