"""Projection: an update as a few coordinates over random directions, which anyone can regenerate from one seed.

Projection format, version 1 (a change of any rule below is a new version). Integers are unsigned. Arithmetic is fp32,
every operation rounded to nearest even and none fused, unless said otherwise.

Words. Philox-4x32-10 (Salmon et al., SC 2011) with key = (low 32 bits, high 32 bits) of the 64-bit seed and
counter = (group, row, block id | tag << 24, version). Block id: position of the block in the model's cut, below 2²⁴.
Row: column k of the basis for T and R, else 0. Tags: :class:`ferret_core.projection.philox.Tag`. An integer below n
from a word x is ⌊x·n / 2³²⌋. A block has d < 2³⁴ elements i and 1 ≤ K ≤ d coordinates k; with K = 0 it does not move.

Signs. Element i: q = ⌊i/4096⌋, e = i mod 4096; group 32q + (e mod 32), word ⌊e/1024⌋, bit ⌊e/32⌋ mod 32 counted from
the top; 1 is minus. Tag SIGNS for G and H (s_i), DENSE_SIGNS for R. A sign flips the sign bit, of zero too.

T, truncated normal. Element i of column k: group ⌊i/4⌋, word x number i mod 4. With u = (2·⌊x/256⌋ + 1 − 2²⁴)·2⁻²⁴,
exact in fp32, and ε = 1/√d and a = 1/(6d), each computed in fp64 and rounded to fp32 once, v = (u·ε)·(1 − a·(1 − u·u)).
γ_k = (1/(ρK))·Σ_i v_ik·Δ_i with ρ = 1/(3d) − 2/(45d²) + 2/(945d³), the exact mean of v².
Reconstruction: sum = 0, then sum + c_k·v_ik for k ascending, each product rounded before it is added; then w − sum.

R, dense signs. v_ik is the sign of element i with row k. γ_k = (1/K)·Σ_i v_ik·Δ_i. Reconstruction as T's.

G, signed buckets. Granule size: the largest power of two ≤ 1024 with size·8·K ≤ d, at least 1. Granule j = ⌊i/size⌋,
stripe t = ⌊j/K⌋, bucket b(i) = (j + r_t) mod K; rotation r_t below K: tag ROTATIONS, group ⌊t/4⌋, word t mod 4.
γ_k = Σ s_i·Δ_i over the elements of bucket k. Reconstruction: w − s_i·c_b(i).

H, randomized Hadamard. Chunks: as many of 4096 elements as fit, then the rest of d by its binary digits, the largest
power of two first. In a chunk of m elements, x → H_m·x/√m: for distances h = 1, 2, 4 … m/2 every pair (a, b) of
elements h apart, with i mod 2h < h for the number i of a, becomes (a + b, a − b); then each is multiplied by 1/√m,
computed in fp64 and rounded once. y is this transform of s∘Δ, numbered as the elements are. Stratum k is places
⌊k·d/K⌋ … ⌊(k + 1)·d/K⌋ − 1, n of them; coordinate k takes place number z of it, an integer below n: tag
HADAMARD_ROWS, group ⌊k/4⌋, word k mod 4. γ_k = n·y there. Reconstruction: c_k at its place, zero elsewhere,
transformed; w − s_i·(element i of it).

I, identity. K = d, γ = Δ. Reconstruction: w − c_i.

Several contributions: one reconstruction after the other, in order, w being fp32 throughout.

Half precision. After all of them w is rounded to bf16 or fp16 once. Tag STOCHASTIC_ROUNDING under the seed of the
rounding, group ⌊i/8⌋, word ⌊(i mod 8)/2⌋; r is its low half for even i, its high half for odd i. The magnitude, as the
31 bits of its fp32 pattern: for bf16, add r and drop the low 16 bits; for fp16 from 2⁻¹⁴ on, add ⌊r/8⌋, drop the low
13 bits, subtract 112·2¹⁰, at most the pattern of infinity; below, ⌊(⌊|w|·2³⁷⌋ + ⌊r/8⌋) / 2¹³⌋. The sign stays,
and so do infinity and NaN.

Reconstruction is the same to the bit everywhere. Coordinates are data: implementations may sum them in any order,
as long as the bits depend on neither threads nor chunks. ``docs/concepts/projection.md`` explains all this and adds the
quantised coordinates and the wire format; ``tests/vectors/projection.json`` holds expected results.
"""

FORMAT_VERSION = 1
