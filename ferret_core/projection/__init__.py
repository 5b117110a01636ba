"""Projection: an update as a few coordinates over random directions that anyone regenerates from one seed.

Projection format, version 1 (a change of any rule below is a new version). All integers are unsigned.

Words. Philox-4x32-10 (Salmon et al., SC 2011) with key = (low 32 bits, high 32 bits) of the 64-bit seed and
counter = (group, row, block id | tag << 24, version). Block id: position of the parameter in the model's canonical
order, below 2²⁴. Row: column k of the basis for T and R, else 0. Tags: :class:`ferret_core.projection.philox.Tag`.
An integer below n from a word x is ⌊x·n / 2³²⌋.

Signs. Element i: q = ⌊i/4096⌋, e = i mod 4096; group 32q + (e mod 32), word ⌊e/1024⌋, bit ⌊e/32⌋ mod 32 counted from
the top; 1 is minus.

T, truncated normal. Element i of column k: group ⌊i/4⌋, word x number i mod 4. With u = (2·⌊x/256⌋ + 1 − 2²⁴)·2⁻²⁴,
exact in fp32, and ε = 1/√d and a = 1/(6d), each computed in fp64 and rounded to fp32 once, v = (u·ε)·(1 − a·(1 − u·u))
with every operation rounded to fp32, none fused. Reconstruction: sum = 0, then sum + c_k·v_k for k ascending, each
product rounded before it is added, then w − sum.

G, signed buckets. Granule size: the largest power of two ≤ 1024 with size·8·K ≤ d, at least 1. Granule j = ⌊i/size⌋,
stripe t = ⌊j/K⌋, bucket (j + r_t) mod K; rotation r_t below K: tag ROTATIONS, group ⌊t/4⌋, word t mod 4.
Reconstruction: w − s_i·c_b in fp32.

Reconstruction is the same to the bit everywhere. Coordinates are data: implementations may sum them in any order,
so long as the bits depend on neither threads nor chunks.
"""

FORMAT_VERSION = 1
