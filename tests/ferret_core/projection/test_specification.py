"""A second implementation, written from ``docs/concepts/projection.md`` alone: nothing of Ferret is imported here.

That it gives the answers of the published vectors shows that the specification is complete.
"""

from __future__ import annotations

import json
import math
import struct
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from numpy.typing import NDArray

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "projection.json").read_text())
Array = NDArray[Any]
Case = dict[str, Any]
f32 = np.float32


def cases(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", VECTORS[name], ids=lambda case: str(case.get("basis", "")))


# Words


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> Array:
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in counter)
    k0, k1 = key
    low, high = np.uint64(2**32 - 1), np.uint64(32)
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = q >> high ^ c1 ^ np.uint64(k0), q & low, p >> high ^ c3 ^ np.uint64(k1), p & low
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return np.stack(np.broadcast_arrays(c0, c1, c2, c3), axis=-1)


def words(seed: int, group: Any, row: Any, block: int, tag: int) -> Array:
    return philox((group, row, block + 2**24 * tag, 1), (seed % 2**32, seed // 2**32))


def word(seed: int, group: Any, number: Any, row: Any, block: int, tag: int) -> Array:
    """Word ``number`` of each group."""
    drawn = words(seed, group, row, block, tag)
    return np.take_along_axis(drawn, np.asarray(number, dtype=np.int64)[..., None], axis=-1)[..., 0]


def signs(i: Array, seed: int, block: int, tag: int, row: int = 0) -> Array:
    q, e = i // 4096, i % 4096
    x = word(seed, 32 * q + e % 32, e // 1024, row, block, tag)
    bit = x >> (31 - e // 32 % 32).astype(np.uint64) & np.uint64(1)
    return np.where(bit == 1, f32(-1), f32(1))


# Families: γ from Δ, and u = V·c; ``d`` elements of block number ``block``


class T:
    def __init__(self, d: int, K: int, block: int, seed: int) -> None:
        self.d, self.K, self.block, self.seed = d, K, block, seed

    def column(self, i: Array, k: int) -> Array:
        x = word(self.seed, i // 4, i % 4, k, self.block, 1).astype(np.int64)
        u = ((2 * (x // 256) + 1 - 2**24) * 2.0**-24).astype(f32)
        epsilon, alpha = f32(1 / math.sqrt(self.d)), f32(1 / (6 * self.d))
        return (u * epsilon) * (f32(1) - (f32(1) - u * u) * alpha)

    def factor(self) -> float:
        d = self.d
        return 1 / (1 / (3 * d) - 2 / (45 * d**2) + 2 / (945 * d**3)) / self.K

    def project(self, delta: Array) -> Array:
        i = np.arange(self.d)
        return np.array([self.column(i, k).astype(float) @ delta * self.factor() for k in range(self.K)])

    def reconstruct(self, c: Array) -> Array:
        u, i = np.zeros(self.d, f32), np.arange(self.d)
        for k in range(self.K):
            u = u + c[k] * self.column(i, k)
        return u

    def entry(self, i: int, k: int) -> float:
        return float(self.column(np.array([i]), k)[0])


class R(T):
    def column(self, i: Array, k: int) -> Array:
        return signs(i, self.seed, self.block, 2, k)

    def factor(self) -> float:
        return 1 / self.K


class G:
    def __init__(self, d: int, K: int, block: int, seed: int) -> None:
        self.d, self.K, self.block, self.seed = d, K, block, seed
        self.z = max([z for z in (1 << b for b in range(11)) if 8 * z * K <= d], default=1)

    def bucket(self, i: Array) -> Array:
        j = i // self.z
        t = j // self.K
        r = word(self.seed, t // 4, t % 4, 0, self.block, 4).astype(np.int64) * self.K // 2**32
        return (j + r) % self.K

    def project(self, delta: Array) -> Array:
        i = np.arange(self.d)
        return np.bincount(self.bucket(i), signs(i, self.seed, self.block, 3) * delta, self.K)

    def reconstruct(self, c: Array) -> Array:
        i = np.arange(self.d)
        return signs(i, self.seed, self.block, 3) * c[self.bucket(i)]

    def entry(self, i: int, k: int) -> float:
        at = np.array([i])
        return float(signs(at, self.seed, self.block, 3)[0]) if self.bucket(at)[0] == k else 0.0


class H:
    def __init__(self, d: int, K: int, block: int, seed: int) -> None:
        self.d, self.K, self.block, self.seed = d, K, block, seed

    def place(self, k: int) -> tuple[int, int]:
        """p_k and n_k."""
        first, n = k * self.d // self.K, (k + 1) * self.d // self.K - k * self.d // self.K
        z = int(word(self.seed, k // 4, k % 4, 0, self.block, 5)) * n // 2**32
        return first + z, n

    def chunk(self, p: int) -> tuple[int, int]:
        """First element and length of the chunk that element p lies in."""
        begin = self.d - self.d % 4096
        if p < begin:
            return p - p % 4096, 4096
        for m in (1 << b for b in reversed(range(12))):
            if self.d % 4096 & m:
                if p < begin + m:
                    return begin, m
                begin += m
        raise ValueError(p)

    def transform(self, x: Array) -> Array:
        y, begin = x.astype(f32), 0
        while begin < self.d:
            _, m = self.chunk(begin)
            part, h = y[begin : begin + m], 1
            while h < m:
                at = np.flatnonzero(np.arange(m) % (2 * h) < h)
                part[at], part[at + h] = part[at] + part[at + h], part[at] - part[at + h]
                h *= 2
            part *= f32(1 / math.sqrt(m))
            begin += m
        return y

    def project(self, delta: Array) -> Array:
        y = self.transform(signs(np.arange(self.d), self.seed, self.block, 3) * delta)
        return np.array([y[p] * n for p, n in map(self.place, range(self.K))])

    def reconstruct(self, c: Array) -> Array:
        placed = np.zeros(self.d, f32)
        for k in range(self.K):
            placed[self.place(k)[0]] = c[k]
        return signs(np.arange(self.d), self.seed, self.block, 3) * self.transform(placed)

    def entry(self, i: int, k: int) -> float:
        p, _ = self.place(k)
        begin, m = self.chunk(p)
        if not begin <= i < begin + m:
            return 0.0
        x = np.zeros(m, f32)
        x[p - begin] = 1
        own = H(m, 1, self.block, self.seed)
        return float(signs(np.array([i]), self.seed, self.block, 3)[0] * own.transform(x)[i - begin])


class I:  # noqa: E742
    def __init__(self, d: int, K: int, block: int, seed: int) -> None:
        assert d == K

    def project(self, delta: Array) -> Array:
        return delta

    def reconstruct(self, c: Array) -> Array:
        return c

    def entry(self, i: int, k: int) -> float:
        return float(i == k)


FAMILIES: dict[str, Any] = {"T": T, "R": R, "G": G, "H": H, "I": I}


# Moving the weights


def rounded(w: Array, dtype: str, seed: int, block: int, start: int) -> Array:
    """Patterns in a half type."""
    i = np.arange(start, start + len(w))
    x = word(seed, i // 8, i % 8 // 2, 0, block, 6).astype(np.int64)
    r = np.where(i % 2 == 0, x % 2**16, x // 2**16)
    pattern = w.view(np.uint32).astype(np.int64)
    sign, b = pattern // 2**31 * 2**15, pattern % 2**31
    infinite, magnitude = b >= 0x7F800000, np.minimum(np.abs(w), f32(2.0**-14)).astype(float)
    if dtype == "bfloat16":
        return sign + np.where(infinite, 0x7F80, (b + r) // 2**16)
    normal = np.minimum((b + r // 8) // 2**13 - 112 * 2**10, 0x7C00)
    small = (np.floor(magnitude * 2.0**37).astype(np.int64) + r // 8) // 2**13
    return sign + np.where(np.abs(w) < f32(2.0**-14), small, normal)


def nearest_bfloat16(w: Array) -> Array:
    bits = w.view(np.uint32).astype(np.int64)
    kept = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    return kept.astype(np.uint32).view(f32)


# Blocks and coordinates


def cut(parameters: dict[str, int], rule: str | int) -> list[list[list[Any]]]:
    if rule == "tensor":
        return [[[name, 0, size]] for name, size in parameters.items()]
    if rule == "grouped":
        M = Fraction(9, 10) * Fraction(median(parameters.values()))
        found: list[list[list[Any]]] = []
        open_block: list[list[Any]] | None = None
        for name, size in parameters.items():
            if size < M and open_block and sum(piece[2] for piece in open_block) + size <= M:
                open_block.append([name, 0, size])
                continue
            found.append([[name, 0, size]])
            if size < M:
                open_block = found[-1]
        return found
    d, L = sum(parameters.values()), int(rule)
    found = [[] for _ in range(L)]
    for position in range(L):
        low, high, start = position * d // L, (position + 1) * d // L, 0
        for name, size in parameters.items():
            first, last = max(low, start), min(high, start + size)
            if first < last:
                found[position].append([name, first - start, last - first])
            start += size
    return found


def total(sizes: list[int], whole: list[bool], budget: int, kind: str) -> int:
    W, L = sum(d for d, item in zip(sizes, whole, strict=True) if item), len(sizes)

    def cost(K: int) -> int:
        listed = sum(1 + len(str(d if item else min(d, K - W))) for d, item in zip(sizes, whole, strict=True))
        sent = {"float32": 4 * K, "float16": 2 * K, "int8": K, "sign": math.ceil((K - W) / 8) + W}[kind]
        return sent + (0 if kind == "float32" else 2 * L + 4) + listed

    return max(K for K in range(W + (sum(sizes) > W), sum(sizes) + 1) if cost(K) <= budget)


def shares(K: int, sizes: list[int], weights: list[int]) -> list[int]:
    """The sum grows piecewise linearly with λ: it bends where a share leaves or meets a bound."""
    f = Fraction(int(len(sizes) <= K))

    def held(rate: Fraction) -> list[Fraction]:
        return [min(max(rate * weight, f), Fraction(d)) for weight, d in zip(weights, sizes, strict=True)]

    turns = sorted({bound / Fraction(w) for w, d in zip(weights, sizes, strict=True) for bound in (f, Fraction(d))})
    low = max((turn for turn in turns if sum(held(turn)) <= K), default=Fraction(0))
    moving = sum(w for w, d in zip(weights, sizes, strict=True) if f <= low * w < d)
    rate = low + Fraction(K - sum(held(low)), moving) if moving else low
    exact = held(rate)
    counts = [math.floor(share) for share in exact]
    order = sorted(range(len(sizes)), key=lambda block: (counts[block] - exact[block], block))
    for block in order[: K - sum(counts)]:
        counts[block] += 1
    return counts


def by_block(values: Array, apart: Array, K: list[int], whole: list[int], scales: list[float]) -> Array:
    """Each block's numbers, those of whole ones from the row ``apart``, times its scale."""
    decoded: list[Array] = []
    for block, (count, scale) in enumerate(zip(K, scales, strict=True)):
        if block in whole:
            part, apart = apart[:count], apart[count:]
        else:
            part, values = values[:count], values[count:]
        decoded.append((part.astype(float) * scale).astype(f32))
    return np.concatenate(decoded)


def scales_of(arrays: dict[str, bytes]) -> list[float]:
    (e,) = np.frombuffer(arrays["exponent"], "<i4")
    return [math.ldexp(float(h), int(e)) for h in np.frombuffer(arrays["scales"], "<f2")]


def stored_scales(S: list[float], up: list[bool]) -> tuple[dict[str, bytes], list[float]]:
    """The arrays, and the scales that a receiver finds: not below S where ``up``."""
    e = math.frexp(max(S))[1] - 15 if max(S) else 0
    h: list[Any] = []
    for scale, raised in zip(S, up, strict=True):
        stored = np.float16(math.ldexp(scale, -e))
        below = raised and float(stored) < math.ldexp(scale, -e)
        h.append(np.nextafter(stored, np.float16(np.inf)) if below else stored)
    arrays = {"scales": np.array(h, "<f2").tobytes(), "exponent": np.array([e], "<i4").tobytes()}
    return arrays, scales_of(arrays)


def in_levels(part: Array, scale: float, seed: int, block: int) -> Array:
    """Whole numbers of the scale, rounded at random."""
    k = np.arange(len(part))
    return np.floor(part / (scale or 1.0) + word(seed, k // 4, k % 4, 1, block, 6) / 2**32).astype("i1")


def decode(arrays: dict[str, bytes], kind: str, K: list[int], whole: list[int]) -> Array:
    if kind == "float32":
        return np.frombuffer(arrays["coordinates"], "<f4")
    bits = np.unpackbits(np.frombuffer(arrays["coordinates"], np.uint8))
    types = {"float16": "<f2", "int8": "i1", "sign": "i1"}
    values = 1.0 - 2.0 * bits if kind == "sign" else np.frombuffer(arrays["coordinates"], types[kind])
    return by_block(values, np.frombuffer(arrays.get("whole", b""), "i1"), K, whole, scales_of(arrays))


def encode(gamma: Array, kind: str, K: list[int], whole: list[int], seed: int) -> dict[str, bytes]:
    if kind == "float32":
        return {"coordinates": gamma.astype("<f4").tobytes()}
    blocks = [part.astype(float) for part in np.split(gamma, np.cumsum(K)[:-1])]
    kinds = ["int8" if kind == "sign" and block in whole else kind for block in range(len(K))]
    S: list[float] = []
    for part, block_ in zip(blocks, kinds, strict=True):
        largest = float(np.abs(part).max(initial=0))
        if largest == 0:
            S.append(0.0)
        elif block_ == "float16":
            S.append(2.0 ** (math.frexp(largest)[1] - 15))
        else:
            S.append(largest / 127 if block_ == "int8" else float(part @ part / np.abs(part).sum()))
    arrays, scales = stored_scales(S, [block_ != "sign" for block_ in kinds])
    rows: dict[str, list[Array]] = {"coordinates": [], "whole": []}
    for block, (part, block_, scale) in enumerate(zip(blocks, kinds, scales, strict=True)):
        levels = in_levels(part, scale, seed, block)
        numbers = {"sign": part < 0, "int8": levels, "float16": (part / (scale or 1.0)).astype("<f2")}[block_]
        rows["whole" if block_ != kind else "coordinates"].append(numbers)
    sent = np.concatenate(rows["coordinates"])
    arrays |= {"coordinates": (np.packbits(sent) if kind == "sign" else sent).tobytes()}
    return arrays | ({"whole": np.concatenate(rows["whole"]).tobytes()} if rows["whole"] else {})


def rice(places: list[int], minus: list[bool], K: int) -> str:
    """The bits, as text."""
    n = len(places)
    r = (K // n).bit_length() - 1
    gaps = [place - before - 1 for before, place in zip([-1, *places], places, strict=False)]
    rows = ["".join(str(gap >> bit & 1) for gap in gaps) for bit in range(r)]
    return "".join(str(int(sign)) for sign in minus) + "".join(rows) + "".join("0" * (gap >> r) + "1" for gap in gaps)


def encode_sparse(gamma: Array, K: list[int], whole: list[int], seed: int, room: int) -> dict[str, bytes]:
    """The largest of every block that is not whole, turn by turn, until no more fit."""
    free = [block for block in range(len(K)) if block not in whole]
    starts = {block: sum(K[other] for other in free if other < block) for block in free}
    blocks, total = np.split(gamma, np.cumsum(K)[:-1]), sum(K[block] for block in free)
    turns = {
        starts[block] + int(place): (-(-(rank + 1) * total // K[block]) if rank else 0)
        for block in free
        for rank, place in enumerate(np.argsort(-np.abs(blocks[block]), kind="stable"))
    }
    row = np.concatenate([blocks[block] for block in free])
    bits, sent = "", list[int]()
    for turn in range(total + 1):
        places = sorted(place for place, first in turns.items() if first <= turn)
        text = rice(places, [row[place] < 0 for place in places], total)
        if len(text) > 8 * room:
            break
        bits, sent = text, places
    S: list[float] = []
    for block, part in enumerate(blocks):
        here = [place for place in sent if 0 <= place - starts.get(block, total) < K[block]]
        S.append(np.abs(part).max() / 127 if block in whole else float(part @ part / np.abs(row[here]).sum()))
    arrays, scales = stored_scales(S, [block in whole for block in range(len(K))])
    apart = b"".join(in_levels(blocks[block], scales[block], seed, block).tobytes() for block in whole)
    packed = int(bits + "0" * (-len(bits) % 8), 2).to_bytes(-(-len(bits) // 8), "big")
    arrays |= {"coordinates": packed, "sent": np.array([len(sent)], "<i4").tobytes()}
    return arrays | ({"whole": apart} if whole else {})


def decode_sparse(arrays: dict[str, bytes], K: list[int], whole: list[int]) -> Array:
    bits = "".join(f"{byte:08b}" for byte in arrays["coordinates"])
    n = int(np.frombuffer(arrays["sent"], "<i4")[0])
    total = sum(count for block, count in enumerate(K) if block not in whole)
    r = (total // n).bit_length() - 1
    values, place, at = np.zeros(total), -1, n * (r + 1)
    for gap in range(n):
        end = bits.index("1", at)
        low = sum(int(bits[n * (b + 1) + gap]) << b for b in range(r))
        place, at = place + 1 + (end - at << r) + low, end + 1
        values[place] = -1 if bits[gap] == "1" else 1
    assert set(bits[at:]) <= {"0"}
    return by_block(values, np.frombuffer(arrays.get("whole", b""), "i1"), K, whole, scales_of(arrays))


# The vectors


@cases("philox")
def test_words(case: Case) -> None:
    counter, key = ([int(text, 16) for text in case[name]] for name in ("counter", "key"))
    drawn = philox((counter[0], counter[1], counter[2], counter[3]), (key[0], key[1]))
    assert [f"{x:08x}" for x in drawn.tolist()] == case["words"]


@cases("entries")
def test_entries(case: Case) -> None:
    family = FAMILIES[case["basis"]](case["d"], case["K"], case["block"], int(case["seed"], 16))
    found = [[family.entry(i, k) for k in case["columns"]] for i in case["rows"]]
    assert found == np.array(case["V"], dtype=f32).tolist()


@cases("rounding")
def test_rounding(case: Case) -> None:
    values = np.array([int(text, 16) for text in case["values"]], dtype=np.uint32).view(f32)
    found = rounded(values, case["dtype"], int(case["seed"], 16), case["block"], case["start"])
    assert [f"{pattern:04x}" for pattern in found.tolist()] == case["rounded"]


@cases("blocks")
def test_blocks(case: Case) -> None:
    found = cut(case["parameters"], case["rule"])
    assert found == case["blocks"]
    sizes = [sum(length for _, _, length in block) for block in found]
    assert [block for block, size in enumerate(sizes) if size <= case["whole_up_to"]] == case["whole"]


@cases("allocation")
@pytest.mark.heavy
def test_allocation(case: Case) -> None:
    sizes = case["sizes"]
    whole = [size <= case["whole_up_to"] for size in sizes]
    assert total(sizes, whole, case["bytes"], case["coordinates"]) == case["K"] == sum(case["K_l"])
    if case["rule"] in ("uniform", "fixed"):
        left = [size for size, item in zip(sizes, whole, strict=True) if not item]
        weights = [1] * len(left) if case["rule"] == "uniform" else left
        rest = iter(shares(case["K"] - sum(sizes) + sum(left), left, weights))
        assert [size if item else next(rest) for size, item in zip(sizes, whole, strict=True)] == case["K_l"]


@cases("models")
def test_models(case: Case) -> None:
    moved: dict[str, list[bytes]] = {"float32": [], "bfloat16": [], "float16": []}
    gammas: list[list[Array]] = [[] for _ in case["terms"]]
    for block, (d, K) in enumerate(zip(case["sizes"], case["K"], strict=True)):
        n = 2654435761 * (np.arange(d) + 1 + 1000 * block)
        before = ((n // 2**8 % 2**11 - 2**10) / 2**10).astype(f32)
        delta = ((n // 2**20 % 2**12 - 2**11) / 2**18).astype(f32)
        held = {"float32": before, "bfloat16": nearest_bfloat16(before), "float16": before.astype("<f2").astype(f32)}
        letter = "I" if d <= case["whole_up_to"] else case["basis"]
        for t, term in enumerate(case["terms"]):
            if K == 0:
                continue
            family = FAMILIES[letter](d, K, block, int(term["seed"], 16))
            gammas[t].append(family.project(delta))
            n = 2654435761 * (np.arange(K) + 1 + 1000 * block + 500000 * (t + 1))
            c = ((n // 2**20 % 2**12 - 2**11) / 2**16).astype(f32)
            u = family.reconstruct(c)
            held = {dtype: w - u for dtype, w in held.items()}
        assert held["float32"][[0, -1]].tolist() == np.array(case["ends"][block], dtype=f32).tolist()
        for dtype, w in held.items():
            half = rounded(w, dtype, int(case["rounding"], 16), block, 0).astype("<u2")
            moved[dtype].append(w.tobytes() if dtype == "float32" else half.tobytes())
    assert {dtype: blake3(b"".join(parts)).hexdigest() for dtype, parts in moved.items()} == case["weights"]
    for found, term in zip(gammas, case["terms"], strict=True):
        largest = max(map(abs, term["gamma"]))
        assert np.concatenate(found).tolist() == pytest.approx(term["gamma"], rel=1e-4, abs=1e-4 * largest)


@cases("coordinates")
def test_coordinates(case: Case) -> None:
    kind, K, whole = case["coordinates"], case["K"], case["whole"]
    arrays = {name: bytes.fromhex(text) for name, text in case["arrays"].items()}
    if kind == "sparse_sign":
        assert encode_sparse(np.array(case["gamma"]), K, whole, int(case["seed"], 16), case["room"]) == arrays
        assert decode_sparse(arrays, K, whole).tolist() == np.array(case["decoded"], dtype=f32).tolist()
        return
    assert encode(np.array(case["gamma"]), kind, K, whole, int(case["seed"], 16)) == arrays
    assert decode(arrays, kind, K, whole).tolist() == np.array(case["decoded"], dtype=f32).tolist()


@cases("blobs")
def test_blobs(case: Case) -> None:
    blob = bytes.fromhex(case["blob"])
    (length,) = struct.unpack("<Q", blob[:8])
    assert length % 8 == 0
    header, body = json.loads(blob[8 : 8 + length]), blob[8 + length :]
    metadata = json.loads(header.pop("__metadata__")["ferret"])
    assert metadata == case["metadata"]
    types = {"F32": "<f4", "F16": "<f2", "I32": "<i4", "U64": "<u8", "I8": "i1", "U8": "u1"}
    end = 0
    for name in sorted(header):
        entry, begin = header[name], end
        end = entry["data_offsets"][1]
        assert entry["data_offsets"][0] == begin
        array = np.frombuffer(body[begin:end], types[entry["dtype"]]).reshape(entry["shape"])
        dtype, values = case["arrays"][name]
        assert array.dtype == dtype
        assert array.tolist() == values
    assert end == len(body)
