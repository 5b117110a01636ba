"""Loads a causal language model and its tokenizer: by folder, or by hub name and revision. Never runs remote code."""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ferret_core import files
from ferret_core.memory import memory_checked
from ferret_core.models.folder import UnfitModel, Weights, look_through
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec

logger = logging.getLogger(__name__)

REMEDY = "use a smaller model, or a machine with more memory"


class LoadedModel(NamedTuple):
    """A model in evaluation mode, and its tokenizer."""

    model: nn.Module
    tokenizer: Any


def context_of(model: nn.Module) -> int:
    """The longest sequence, in tokens, for which ``model`` has positions; a soft prompt takes some of them."""
    return int(getattr(model.config, "max_position_embeddings", 2048)) - virtual_tokens(model)


def virtual_tokens(model: nn.Module) -> int:
    """The length of the soft prompt that ``model`` puts before every sequence; 0 for a model without."""
    return getattr(getattr(model, "active_peft_config", None), "num_virtual_tokens", 0)


def load(spec: ModelSpec, *, anywhere: bool = False, as_stored: bool = False) -> LoadedModel:
    """The model of ``spec`` in its ``dtype``, on the CPU; ``model.invalid`` names the source and what is wrong.

    ``anywhere``: the folder is the caller's own and need not lie under a root (:mod:`ferret_core.files`).
    ``as_stored``: in the type that its files have, so that it takes no more memory than they do on disk.
    Raises ``memory.exhausted`` where the machine has too little for it.
    """
    own = files.within(None) if anywhere else nullcontext()
    with own, _typed(spec), memory_checked(REMEDY):
        loaded = _load(spec, _look(spec), "auto" if as_stored else getattr(torch, spec.dtype))
        _check_ids(loaded)
        return loaded


def _load(spec: ModelSpec, weights: Weights | None, dtype: torch.dtype | str) -> LoadedModel:
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options: dict[str, Any] = {"trust_remote_code": False}
    if spec.revision:
        options["revision"] = spec.revision
    if weights is not None:
        options["local_files_only"] = True  # whatever its files name, nothing is fetched for a folder
        _check_size(spec, weights, options)
    tokenizer = AutoTokenizer.from_pretrained(spec.source, **options)
    # With output_loading_info the answer is a pair, which the library's types do not say.
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        spec.source, use_safetensors=True, dtype=dtype, output_loading_info=True, **options
    )
    model, info = loaded
    if info["missing_keys"]:
        # transformers would fill them with random numbers, others on every machine.
        raise UnfitModel(f"has no weights for {', '.join(sorted(info['missing_keys'])[:3])}")
    return LoadedModel(model.eval(), tokenizer)


def skeleton(spec: ModelSpec, *, anywhere: bool = False) -> LoadedModel | None:
    """The model of ``spec`` without numbers, its parameters on the meta device and its buffers on the CPU, and its
    tokenizer; None for a name on the hub. Looks through the folder and raises as :func:`load`."""
    own = files.within(None) if anywhere else nullcontext()
    with own, _typed(spec), memory_checked(REMEDY):
        weights = _look(spec)
        if weights is None:
            return None
        loaded = _skeleton(spec, weights)
        _check_ids(loaded)
        return loaded


def _skeleton(spec: ModelSpec, weights: Weights) -> LoadedModel:
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    _check_size(spec, weights, options)
    tokenizer = AutoTokenizer.from_pretrained(spec.source, **options)
    config = AutoConfig.from_pretrained(spec.source, **options)
    with torch.random.fork_rng([]), _parameters_on_meta():
        model: Any = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, spec.dtype))
    if (Path(spec.source).expanduser() / "generation_config.json").exists():
        model.generation_config = GenerationConfig.from_pretrained(spec.source, local_files_only=True)
    return LoadedModel(model.eval(), tokenizer)


@contextmanager
def _parameters_on_meta() -> Generator[None]:
    """Every parameter that a module registers in the block takes no memory. What is there already, tied, stays the same
    object."""
    register = nn.Module.register_parameter

    def on_meta(self: nn.Module, name: str, param: nn.Parameter | None) -> None:
        if param is not None and param.device.type != "meta":
            param = nn.Parameter(param.to("meta"), requires_grad=param.requires_grad)
        register(self, name, param)

    nn.Module.register_parameter = on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def _check_size(spec: ModelSpec, weights: Weights, options: Mapping[str, Any]) -> None:
    """Raises where the configuration describes a model far larger than its weights, whose rest would be made up.

    The model is built without memory for that, on the meta device. Twice as large is let pass: tied weights lie in
    the file once.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(spec.source, **options)
    with torch.random.fork_rng([]), torch.device("meta"):
        described = sum(weight.numel() for weight in AutoModelForCausalLM.from_config(config).parameters())
    if described > 2 * weights.elements:
        raise UnfitModel(f"config.json describes {described} parameters, the weights hold {weights.elements}")


def _check_ids(loaded: LoadedModel) -> None:
    """Raises where the tokenizer gives tokens that the model has no embedding for: training would end in mid-step."""
    rows = cast(Any, loaded.model).get_input_embeddings().weight.shape[0]
    ids = loaded.tokenizer.get_vocab().values()
    if ids and not 0 <= max(ids) < rows:
        raise UnfitModel(f"its tokenizer has tokens up to {max(ids)}, its embeddings end before {rows}")


def _look(spec: ModelSpec) -> Weights | None:
    """What is in a local folder; None for a name on the hub."""
    path = Path(spec.source).expanduser()
    parts = path.parts
    local = path.is_absolute() or spec.source.startswith((".", "~")) or ".." in parts or len(parts) > 2
    if not local and not path.exists():
        return None
    real = files.allowed(path)
    if not real.is_dir():
        raise UnfitModel("is not a folder")
    return look_through(real)


@contextmanager
def _typed(spec: ModelSpec) -> Generator[None]:
    """Whatever goes wrong is told without what stands in the files; the log has all of it.

    The loading library raises all there is for files it does not expect, and panics of its Rust parts are not even
    ``Exception``.
    """
    try:
        yield
    except FerretError:
        raise
    except (UnfitModel, files.UnfitFile) as error:
        raise _invalid(spec, str(error)) from error
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        logger.info("%s cannot be loaded", spec.source, exc_info=True)
        if Path(spec.source).expanduser().exists():
            message = f"the files of the folder do not make a model ({type(error).__name__}): the log has more"
        else:
            message = _first_line(error)
        raise _invalid(spec, message) from error


def _invalid(spec: ModelSpec, message: str) -> FerretError:
    return FerretError.of_field("model.invalid", "model.source", spec.source, message)


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
