from __future__ import annotations

import copy
import gc
import json
import multiprocessing
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from select import select
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM

from ferret_core.models.digest import model_digest
from ferret_core.models.on_disk import OnDisk, writing
from ferret_core.models.parameters import trainable
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, blocks_of
from ferret_core.projection.project import Projected, apply_, norms, project
from ferret_core.protocol.errors import FerretError

INDEX = "model.safetensors.index.json"
HALVES_AND_WHOLE = [torch.float32, torch.bfloat16, torch.float16]

every_type = pytest.mark.parametrize("dtype", HALVES_AND_WHOLE)
every_layout = pytest.mark.parametrize("shard_size", ["1GB", "20kB"], ids=["single", "sharded"])


def tensors() -> dict[str, Tensor]:
    """Of every type that a model may have, with sizes that leave the next tensor at odd places."""
    generator = torch.Generator().manual_seed(1)
    return {
        "w.single": torch.randn(33, 65, generator=generator),
        "b.half": torch.randn(7, generator=generator).half(),
        "a.brain": torch.randn(5, 3, generator=generator).bfloat16(),
        "c.scalar": torch.tensor(2.5),
        "d.empty": torch.empty(0, 4),
        "e.steps": torch.arange(3),
        "f.mask": torch.tensor([True, False, True]),
    }


def saved(folder: Path, contents: Mapping[str, Tensor], shards: int = 1) -> Path:
    """The folder, with the tensors in one file or dealt out to several."""
    folder.mkdir(exist_ok=True)
    if shards == 1:
        save_file(dict(contents), folder / "model.safetensors")
        return folder
    names = list(contents)
    dealt = {f"model-{i}.safetensors": names[i::shards] for i in range(shards)}
    for file, mine in dealt.items():
        save_file({name: contents[name] for name in mine}, folder / file)
    weight_map = {name: file for file, mine in dealt.items() for name in mine}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


@pytest.mark.parametrize("shards", [1, 3])
def test_floating_tensors_in_sorted_order_as_the_library_reads_them(tmp_path: Path, shards: int) -> None:
    stored = OnDisk(saved(tmp_path, tensors(), shards))
    assert list(stored) == ["a.brain", "b.half", "c.scalar", "d.empty", "w.single"]
    assert len(stored) == 5
    for name, tensor in stored.items():
        assert tensor.dtype == tensors()[name].dtype
        assert torch.equal(tensor, tensors()[name])


def test_with_a_model_its_trainable_parameters_and_nothing_else(tmp_path: Path) -> None:
    """In the file, "shared" stands under the second of its names, and the buffer looks like any parameter."""
    model = nn.Module()
    model.register_parameter("b_shared", nn.Parameter(torch.ones(3)))
    model.register_parameter("c_shared", model.b_shared)
    model.register_parameter("a", nn.Parameter(torch.zeros(2, 2)))
    model.register_parameter("frozen", nn.Parameter(torch.zeros(2), requires_grad=False))
    model.register_buffer("running", torch.zeros(4))
    contents = {name: tensor.detach() for name, tensor in model.state_dict().items() if name != "b_shared"}
    stored = OnDisk(saved(tmp_path, contents), model)
    assert list(stored) == list(trainable(model)) == ["a", "b_shared"]
    assert torch.equal(stored["b_shared"], torch.ones(3))
    assert "running" not in stored


def test_a_model_on_the_meta_device_names_them_too(tiny_model_dir: Path, tiny_model: LlamaForCausalLM) -> None:
    with torch.device("meta"):
        outline = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(tiny_model_dir))
    stored = OnDisk(tiny_model_dir, outline)
    assert list(stored) == list(trainable(tiny_model))
    assert all(torch.equal(stored[name], tensor) for name, tensor in trainable(tiny_model).items())


def update_of(model: nn.Module) -> tuple[list[Block], list[Projected]]:
    """Two contributions to the model, at one coordinate in four."""
    before = trainable(model)
    generator = torch.Generator().manual_seed(4)
    after = {n: (p.detach() + 0.01 * torch.randn(p.shape, generator=generator)).to(p.dtype) for n, p in before.items()}
    blocks = blocks_of(before)
    K = [-(-block.size // 4) for block in blocks]
    return blocks, [project(before, after, blocks, basis("G"), K, seed) for seed in (1, 2)]


@every_type
@every_layout
def test_a_checkpoint_moved_in_place_is_the_model_moved_in_memory(
    tiny_model: LlamaForCausalLM, tmp_path: Path, dtype: torch.dtype, shard_size: str
) -> None:
    model: Any = tiny_model.to(dtype)
    model.save_pretrained(tmp_path, max_shard_size=shard_size)
    files = sorted(tmp_path.glob("*.safetensors"))
    assert (len(files) > 1) == (shard_size == "20kB")
    blocks, terms = update_of(model)
    apply_(trainable(model), blocks, basis("G"), terms, rounding=9)
    with writing(tmp_path, model) as weights:
        apply_(weights, blocks, basis("G"), terms, rounding=9)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=dtype)
    assert model_digest(loaded) == model_digest(model)
    for file in files:
        with safe_open(file, "pt") as opened:
            for name in opened.keys():  # noqa: SIM118 - it has no __iter__
                assert torch.equal(opened.get_tensor(name), model.get_parameter(name))


def test_projecting_from_disk_is_projecting_from_memory(tiny_model: LlamaForCausalLM, tiny_model_dir: Path) -> None:
    before, stored = copy.deepcopy(tiny_model), OnDisk(tiny_model_dir, tiny_model)
    blocks, terms = update_of(tiny_model)
    apply_(trainable(tiny_model), blocks, basis("G"), terms)
    after = trainable(tiny_model)
    K = [1] * len(blocks)
    here, there = (project(model, after, blocks, basis("T"), K, 3) for model in (trainable(before), stored))
    assert all(map(torch.equal, here.coordinates, there.coordinates))
    assert norms(stored, after, blocks) == norms(trainable(before), after, blocks)


def test_what_is_written_into_tensors_to_read_does_not_reach_the_file(tmp_path: Path) -> None:
    folder = saved(tmp_path, tensors())
    written = (folder / "model.safetensors").read_bytes()
    OnDisk(folder)["w.single"].zero_()
    assert (folder / "model.safetensors").read_bytes() == written
    assert torch.equal(OnDisk(folder)["w.single"], tensors()["w.single"])


def test_tensors_share_the_memory_of_the_file_while_they_live(tmp_path: Path) -> None:
    folder = saved(tmp_path, tensors())
    with writing(folder) as weights:
        one, other, reader = weights["w.single"], weights["w.single"], OnDisk(folder)["w.single"]
        one[4, 5] = 77.0
        assert other[4, 5] == 77.0
        assert reader[4, 5] == 77.0
        assert load_file(folder / "model.safetensors")["w.single"][4, 5] == 77.0
        assert str(folder) in Path("/proc/self/maps").read_text()
        del one, other, reader
        gc.collect()
        assert str(folder) not in Path("/proc/self/maps").read_text()


def test_processes_that_share_out_the_blocks_write_the_same_file(tmp_path: Path) -> None:
    """Both write at once, and between their blocks lie pages of which each owns a part."""
    generator = torch.Generator().manual_seed(6)
    model = {f"layer.{i}": torch.randn(3000 + i, generator=generator).bfloat16() for i in range(40)}
    folder, blocks = saved(tmp_path, model, shards=2), blocks_of(model, 16)
    terms = [Projected(seed, [torch.full((9,), 0.1) for _ in blocks]) for seed in (1, 2)]
    together = multiprocessing.get_context("fork")
    barrier = together.Barrier(2)

    def work(part: slice) -> None:
        with writing(folder) as weights:
            barrier.wait(30)
            mine = [term._replace(coordinates=term.coordinates[part]) for term in terms]
            apply_(weights, blocks[part], basis("G"), mine, rounding=3)

    workers = [together.Process(target=work, args=(part,)) for part in (slice(0, None, 2), slice(1, None, 2))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    apply_(model, blocks, basis("G"), terms, rounding=3)
    stored = OnDisk(folder)
    assert all(torch.equal(stored[name], tensor) for name, tensor in model.items())


def with_header(folder: Path, header: object, body: bytes = b"\0" * 16) -> None:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)


def entry(begin: int, end: int, *, dtype: str = "F32", shape: object = (2,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def cut_short(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-3])


HEADERS: dict[str, tuple[object, str]] = {
    "an unknown type": ({"w": entry(0, 16, dtype="F4")}, r"w\.dtype = 'F4'"),
    "a shape that is no list": ({"w": entry(0, 8, shape="2")}, r"w\.shape = '2'"),
    "a negative size": ({"w": entry(0, 16, shape=[-2, -2])}, r"w\.shape"),
    "a size that is true": ({"w": entry(0, 4, shape=[True])}, r"w\.shape"),
    "bytes for another shape": ({"w": entry(0, 16)}, r"w\.data_offsets = .*need 8 bytes"),
    "bytes beyond the file": ({"w": entry(0, 24, shape=[6])}, "w = .*copy it again"),
    "bytes before the first": ({"w": entry(-8, 0)}, r"w\.data_offsets"),
    "an end before the beginning": ({"w": entry(8, 0)}, r"w\.data_offsets"),
    "a single offset": ({"w": {"dtype": "F32", "shape": [], "data_offsets": [0]}}, r"w\.data_offsets"),
    "two tensors in one place": ({"v": entry(0, 8), "w": entry(4, 12)}, r"w\.data_offsets = 4: .*begin at 8"),
    "a gap between tensors": ({"v": entry(0, 4, shape=[1]), "w": entry(8, 16)}, r"w\.data_offsets = 8: .*at 4"),
    "bytes after the last": ({"w": entry(0, 8)}, "file = .* 8 bytes that belong to no tensor"),
    "a field too few": ({"w": {"dtype": "F32", "shape": [4]}}, r"w = None: needs exactly"),
    "an entry that is a list": ({"w": [1, 2]}, r"w = None: needs exactly"),
    "a header that is a list": ([1, 2], "header = 'list'"),
    "data at odd places": (
        {"m": entry(0, 2, dtype="U8"), "w": entry(2, 14, shape=[3]), "x": entry(14, 16, dtype="U8")},
        "w = .*not aligned",
    ),
}


@pytest.mark.parametrize(("header", "message"), HEADERS.values(), ids=HEADERS)
def test_a_header_that_is_wrong_is_refused_by_file_and_tensor(tmp_path: Path, header: object, message: str) -> None:
    with_header(tmp_path, header)
    refuses(tmp_path, f"model.safetensors: {message}")


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file cut short": (cut_short, "model.safetensors: b.half = .*copy it again"),
    "an empty file": (lambda folder: (folder / "model.safetensors").write_bytes(b""), "header length = 0"),
    "a header beyond the file": (
        lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 40) + b"{}"),
        f"header length = {1 << 40}",
    ),
    "a header that is no JSON": (
        lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", 2) + b"{]"),
        "model.safetensors: header = .*not JSON",
    ),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "holds neither model.safetensors nor"),
    "no folder": (shutil.rmtree, "holds neither model.safetensors nor"),
}


@pytest.mark.parametrize(("spoil", "message"), FILES.values(), ids=FILES)
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(saved(tmp_path / "model", {name: tensors()[name] for name in ("b.half", "w.single")}))
    refuses(tmp_path / "model", message)


def changed(**entries: object) -> Callable[[Path], object]:
    """Spoils the index: names led to other files."""

    def change(folder: Path) -> None:
        index = json.loads((folder / INDEX).read_text())
        index["weight_map"] |= entries
        (folder / INDEX).write_text(json.dumps(index))

    return change


INDICES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a missing shard": (
        lambda folder: (folder / "model-1.safetensors").unlink(),
        "model-1.safetensors.*cannot be read",
    ),
    "a tensor in another shard": (changed(v="model-1.safetensors"), f"{INDEX}: v = 'model-1.safetensors'"),
    "a tensor in no shard": (changed(head="model-0.safetensors"), f"{INDEX}: head = 'model-0.safetensors'"),
    "a shard outside the folder": (changed(v="../model-0.safetensors"), f"{INDEX}: v = .*in this folder"),
    "a shard that is no name": (changed(v=3), f"{INDEX}: v = '3'"),
    "no weight map": (lambda folder: (folder / INDEX).write_text("{}"), f"{INDEX}: weight_map"),
    "an index that is no JSON": (lambda folder: (folder / INDEX).write_text("weights"), f"{INDEX}: .*not JSON"),
}


@pytest.mark.parametrize(("spoil", "message"), INDICES.values(), ids=INDICES)
def test_an_index_that_is_wrong_is_refused(tmp_path: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(saved(tmp_path, {"v": torch.ones(2), "w": torch.ones(3)}, shards=2))
    refuses(tmp_path, message)


def test_a_tied_parameter_that_the_files_hold_twice_is_refused(tmp_path: Path) -> None:
    """Moving one copy would leave the other behind, and nothing says which of them a library loads."""
    tied = nn.ModuleDict({"embedding": nn.Embedding(4, 3), "head": nn.Linear(3, 4, bias=False)})
    tied["head"].weight = tied["embedding"].weight
    contents = {name: tensor.detach().clone() for name, tensor in tied.state_dict().items()}
    refuses(saved(tmp_path, contents), r"embedding\.weight = .*holds it 2 times", tied)


def test_files_of_another_model_are_refused(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2)
    refuses(saved(tmp_path, {"weight": torch.ones(2, 3)}), "bias = .*holds it 0 times", layer)
    refuses(
        saved(tmp_path, {"weight": torch.ones(3, 2), "bias": torch.ones(2)}), r"weight = \(3, 2\): .*\(2, 3\)", layer
    )


def refuses(folder: Path, message: str, model: nn.Module | None = None) -> None:
    with pytest.raises(FerretError, match=message) as caught:
        OnDisk(folder, model)
    assert caught.value.code == "model.invalid"
    caught.value.to_json()


SIZES = {"embedding": 36 << 20, "up": 14 << 20, "down": 14 << 20, "norm": 4099}
WORK = """
import sys
from pathlib import Path
import torch
from ferret_core.models.on_disk import OnDisk, writing
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import apply_, norms, project

torch.set_num_threads(1)

def work(before, after):
    blocks = blocks_of(OnDisk(before))
    K = [min(block.size, 1 << 14) for block in blocks]
    norms(OnDisk(before), OnDisk(after), blocks)
    projected = project(OnDisk(before), OnDisk(after), blocks, basis("G"), K, seed=1)
    with writing(before) as weights:
        apply_(weights, blocks, basis("G"), [projected, projected])

small, before, after = map(Path, sys.argv[1:])
work(small, small)
print("ready", flush=True)
sys.stdin.readline()
work(before, after)
print("done", flush=True)
sys.stdin.readline()
"""


def test_extra_memory_does_not_grow_with_the_model(tmp_path: Path) -> None:
    """Twice 256 MB of weights, the largest tensor 144 MB: what the process allocates of its own stays below 64 MB."""
    small, before, after = (blank(tmp_path / name, scale) for name, scale in (("small", 64), ("base", 1), ("new", 1)))
    environment = {name: value for name, value in os.environ.items() if name != "FERRET_KERNEL"}
    command = [sys.executable, "-c", WORK, str(small), str(before), str(after)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        base = peak = anonymous(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        while not select([process.stdout], [], [], 0.002)[0]:
            peak = max(peak, anonymous(process.pid))
        assert process.stdout.readline() == "done\n"
        process.communicate("\n")
    assert peak - base < 64 << 20


def blank(folder: Path, scale: int) -> Path:
    """A model of zeros in sparse files, a shard for each tensor."""
    folder.mkdir()
    for name, size in SIZES.items():
        count = -(-size // scale)
        text = json.dumps({name: entry(0, 4 * count, shape=[count])}).encode()
        text += b" " * (-len(text) % 8)
        with (folder / f"{name}.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + 4 * count)
    weight_map = {name: f"{name}.safetensors" for name in SIZES}
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return folder


def anonymous(pid: int) -> int:
    """Bytes of memory that no file stands behind."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10
