"""Properties of a model that are known without loading it, and without torch: its parameters' shapes and magnitudes.

They come from a folder in Hugging Face layout, by the headers of its weights and a sample of their numbers; or from the
sizes of a LLaMA alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ferret_core.models.shapes import Shapes
from ferret_core.models.untrusted_folder import CONFIG, FLOATING, WEIGHTS, ModelFolderError, inspect_folder
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array
from ferret_core.system import untrusted_files

RUNS, RUN = 16, 4096
"""A parameter's RMS is computed from ``RUNS`` evenly spaced runs of ``RUN`` numbers: a large file is not read whole."""
TYPICAL_RMS = 0.02
"""RMS of a large language model's matrices, if only shapes are known."""


class LayerSizes(NamedTuple):
    """Sizes of a transformer: ``mlp`` is its feed-forward layers' width, ``kv_heads`` the number for grouped attention,
    ``head`` the width of a head, by default the hidden one's share.

    ``hidden`` and ``layers`` are 0 if they are unknown.
    """

    hidden: int
    layers: int
    mlp: int
    heads: int
    kv_heads: int
    vocabulary: int
    head: int = 0

    @property
    def query(self) -> int:
        """Width of a layer's queries."""
        return self.head * self.heads or self.hidden

    @property
    def key_value(self) -> int:
        """Width of a layer's keys, and of its values."""
        return self.query // self.heads * self.kv_heads

    @property
    def layer_weights(self) -> int:
        """Number of weights in the matrices of one layer of a LLaMA."""
        return self.hidden * (2 * self.query + 2 * self.key_value + 3 * self.mlp)

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> LayerSizes:
        """Reads a model's ``config.json``, by LLaMA's names or GPT-2's; a missing feed-forward width is four times the
        hidden one."""

        def first(*names: str, otherwise: int = 0) -> int:
            return next((int(config[name]) for name in names if config.get(name)), otherwise)

        hidden, heads = first("hidden_size", "n_embd"), first("num_attention_heads", "n_head", otherwise=1)
        return cls(
            hidden=hidden,
            layers=first("num_hidden_layers", "n_layer"),
            mlp=first("intermediate_size", "n_inner", "ffn_dim", otherwise=4 * hidden),
            heads=heads,
            kv_heads=first("num_key_value_heads", otherwise=heads),
            vocabulary=first("vocab_size"),
            head=first("head_dim"),
        )


LLAMAS = {
    "llama-1b": LayerSizes(2048, 24, 5504, 16, 16, 32_000),
    "llama-3b": LayerSizes(3200, 26, 8640, 32, 32, 32_000),
    "llama2-7b": LayerSizes(4096, 32, 11_008, 32, 32, 32_000),
    "llama2-13b": LayerSizes(5120, 40, 13_824, 40, 40, 32_000),
    "llama3-8b": LayerSizes(4096, 32, 14_336, 32, 8, 128_256),
    "qwen2.5-7b": LayerSizes(3584, 28, 18_944, 28, 4, 152_064),
}
"""The paper's models: DataJuicer-1.3B, LLaMA-3B, LLaMA2-7B and 13B, LLaMA3-8B and, without the biases of its attention,
Qwen2.5-7B."""


class Architecture(NamedTuple):
    """``shapes`` of the parameters in canonical order, tied ones once, the ``rms`` of each, and the layers' ``sizes``.

    ``context`` is the longest sequence in tokens, None if the folder does not say.
    """

    shapes: Shapes
    rms: Mapping[str, float]
    sizes: LayerSizes
    context: int | None = None


def of_llama(name: str) -> Architecture:
    """Returns the outline of one of ``LLAMAS`` with untied embeddings; raises ``request.invalid`` for another name."""
    if name not in LLAMAS:
        raise FerretError.of_field("request.invalid", "--shape", name, f"choose one of {', '.join(LLAMAS)}")
    sizes = LLAMAS[name]
    shapes = dict(sorted(_llama_parameters(sizes)))
    rms = {parameter: TYPICAL_RMS if len(shape) > 1 else 1.0 for parameter, shape in shapes.items()}
    return Architecture(shapes, rms, sizes)


def of_folder(source: str) -> Architecture:
    """Returns the outline of the model in a folder; raises ``model.invalid`` for anything else, including hub names."""
    try:
        path = untrusted_files.allowed(Path(source).expanduser())
        if not path.is_dir():
            raise ModelFolderError("is not a folder here: give one, or use --shape with the name of a model like it")
        inspect_folder(path)
        return _read(path)
    except (ModelFolderError, untrusted_files.UntrustedFileError) as error:
        raise FerretError.of_field("model.invalid", "model.source", source, str(error)) from error


def _llama_parameters(sizes: LayerSizes) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, key_value = sizes.hidden, sizes.key_value
    yield "model.embed_tokens.weight", (sizes.vocabulary, hidden)
    yield "lm_head.weight", (sizes.vocabulary, hidden)
    yield "model.norm.weight", (hidden,)
    layer = {
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (key_value, hidden),
        "self_attn.v_proj": (key_value, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (sizes.mlp, hidden),
        "mlp.up_proj": (sizes.mlp, hidden),
        "mlp.down_proj": (hidden, sizes.mlp),
        "input_layernorm": (hidden,),
        "post_attention_layernorm": (hidden,),
    }
    for number in range(sizes.layers):
        yield from ((f"model.layers.{number}.{name}.weight", shape) for name, shape in layer.items())


def _read(folder: Path) -> Architecture:
    config: dict[str, Any] = json.loads((folder / CONFIG).read_bytes())
    found = dict(sorted(item for file in folder.iterdir() if file.suffix == WEIGHTS for item in _parameters(file)))
    tied = (
        config.get("tie_word_embeddings", True) and "lm_head.weight" in found and "model.embed_tokens.weight" in found
    )
    if tied:
        del found["model.embed_tokens.weight"]
    shapes = {name: shape for name, (shape, _) in found.items()}
    rms = {name: _rms(sample()) for name, (_, sample) in found.items()}
    return Architecture(
        shapes, rms, LayerSizes.of_config(config), config.get("max_position_embeddings", config.get("n_positions"))
    )


def _parameters(file: Path) -> Iterator[tuple[str, tuple[tuple[int, ...], Callable[[], Array]]]]:
    """Yields the floating-point arrays of a safetensors file: name, shape, and a function that samples its numbers."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        header: dict[str, Any] = json.loads(opened.read(length))
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in FLOATING:
            begin = 8 + length + entry["data_offsets"][0]
            yield name, (tuple(entry["shape"]), _sampler(file, entry["dtype"], begin, math.prod(entry["shape"])))


def _sampler(file: Path, dtype: str, begin: int, count: int) -> Callable[[], Array]:
    stored = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}[dtype]

    def sample() -> Array:
        if count == 0:
            return np.zeros(0)
        whole = np.memmap(file, stored, "r", begin, count)
        starts = range(0, count, RUN) if count <= RUNS * RUN else range(0, count - RUN, (count - RUN) // RUNS)
        numbers = np.concatenate([whole[start : start + RUN] for start in starts])
        if dtype == "BF16":
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        return numbers

    return sample


def _rms(numbers: Array) -> float:
    return float(np.sqrt(np.square(numbers, dtype=np.float64).mean())) if numbers.size else 0.0
