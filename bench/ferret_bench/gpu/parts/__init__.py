"""The GPU measurements, one file per part; ``ferret_bench/gpu/runner.py`` has their order."""
