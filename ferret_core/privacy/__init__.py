"""Differential privacy of single records without a trusted server.

In each round a site draws units (examples, or all examples of a person) by a secret coin, turns the gradient of each
into integers of L2 norm at most √K, and adds discrete Gaussian noise to their sum before it is masked
(:mod:`ferret_core.secure`). The sum of a group's noise is as strong as a trusted server's would be.
``docs/reference/record-privacy.md`` has the mechanism and its accounting.
"""
