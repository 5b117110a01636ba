"""The parts of ``ferret_bench/control.py``."""
