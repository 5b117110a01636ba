import pytest
import torch

from ferret_core.projection.philox import philox, uniform_below

# Known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds): counter, key, words.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_known_answers(counter: tuple[int, ...], key: tuple[int, int], words: tuple[int, ...]) -> None:
    c0, c1, c2, c3 = (torch.tensor([word, 0]) for word in counter)
    assert tuple(int(torch.as_tensor(word)[0]) for word in philox((c0, c1, c2, c3), key)) == words


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**31, 2**32 + 1, 2**46])
def test_uniform_below_is_the_high_word_of_the_product(n: int) -> None:
    words = torch.tensor([0, 1, 2**31, 2**32 - 1])
    expected = [int(word) * n // 2**32 for word in words]
    assert torch.as_tensor(uniform_below(words, n)).tolist() == expected
    assert torch.as_tensor(uniform_below(words, torch.full((4,), n))).tolist() == expected
    assert [uniform_below(int(word), n) for word in words] == expected
