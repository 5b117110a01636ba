"""Secure sums: a group's server learns the sum of its members' vectors, and nothing else about any of them.

Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning", CCS 2017, with double masks and
signed lists of survivors, in groups of 3 to 64. Each pair of members shares a mask.
``docs/reference/secure-sums.md`` describes
the messages byte by byte.

    roster     the group's members, keys, round and model; its digest salts every key
    deal       each member splits its self-mask seed and its mask secret into shares for all members
    mask       each member sends its vector plus its self mask plus or minus one mask for each other member
    agree      each member signs the one list of survivors that it accepts
    release    each member gives its shares of the survivors' seeds and of the others' secrets, which removes all masks

:mod:`ferret_core.secure.member` is a member's side, :mod:`ferret_core.secure.group` the server's.
"""
