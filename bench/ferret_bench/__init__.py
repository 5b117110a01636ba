"""Benchmarks, one file each, found by file name: ``ferret bench NAME``. Each gives one JSON document."""
