"""Benchmarks, one file each, found by file name: ``ferret dev bench NAME``. Each gives one JSON document."""
