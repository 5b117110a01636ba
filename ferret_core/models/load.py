"""Loads a causal language model and its tokenizer: by folder, or by hub name and revision. Never runs remote code."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from ferret_core.models import definition
from ferret_core.models.definition import GENERATION_CONFIG, Files
from ferret_core.models.digest import model_digest
from ferret_core.models.untrusted_folder import CONFIG, ModelFolderError, Weights, inspect_folder
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec
from ferret_core.system import untrusted_files
from ferret_core.system.device import memory_checked

logger = logging.getLogger(__name__)

REMEDY = "use a smaller model, or a machine with more memory"

_ONE_AT_A_TIME = threading.Lock()
"""Building a model changes settings of the whole process, here and in transformers: two threads that build at the same
time get models with untied weights, or on the wrong device."""


class LoadedModel(NamedTuple):
    """A model in evaluation mode, its tokenizer, and the bytes of the files that define both, if it was loaded."""

    model: nn.Module
    tokenizer: Any
    files: Files = MappingProxyType({})


def digest_of(loaded: LoadedModel) -> str:
    """Returns the digest of a loaded base model, before an algorithm adapts it, and without an algorithm's bases."""
    own = {name: data for name, data in loaded.files.items() if name != definition.BASES}
    return model_digest(loaded.model, files=definition.digest(own))


def context_of(model: nn.Module) -> int:
    """Returns the longest sequence, in tokens, that ``model`` has positions for; a soft prompt takes some of them."""
    return int(getattr(model.config, "max_position_embeddings", 2048)) - virtual_tokens(model)


def virtual_tokens(model: nn.Module) -> int:
    """Returns the length of the soft prompt of ``model``; 0 for a model without one."""
    return getattr(getattr(model, "active_peft_config", None), "num_virtual_tokens", 0)


def load(spec: ModelSpec, *, anywhere: bool = False, as_stored: bool = False) -> LoadedModel:
    """Loads the model of ``spec`` in its ``dtype``, on the CPU; raises ``model.invalid`` with the source and the
    reason.

    ``anywhere``: the folder is the caller's own and need not be under a root
    (:mod:`ferret_core.system.untrusted_files`). ``as_stored``: use the type of its files, so that it takes no more
    memory than on disk. Raises ``memory.exhausted`` if the machine has too little memory.
    """
    own = untrusted_files.allowed_roots(None) if anywhere else nullcontext()
    with own, _typed(spec), memory_checked(REMEDY), _ONE_AT_A_TIME:
        loaded = _load(spec, _look(spec), None if as_stored else getattr(torch, spec.dtype))
        _check_ids(loaded)
        return loaded


def _load(spec: ModelSpec, weights: Weights | None, dtype: torch.dtype | None) -> LoadedModel:
    from transformers import AutoModelForCausalLM

    options: dict[str, Any] = {"trust_remote_code": False}
    if weights is not None:
        options["local_files_only"] = True  # nothing is downloaded for a folder, whatever its files name
        found = definition.read(Path(spec.source).expanduser())
    else:
        options["revision"] = _commit(spec)
        found = _fetch(spec.source, options["revision"])
    config, tokenizer = _defined(spec, found, weights)
    if dtype is None:
        _forget_dtype(config)
    # With output_loading_info the result is a pair, which is missing from the library's types.
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        spec.source, config=config, use_safetensors=True, dtype=dtype or "auto", output_loading_info=True, **options
    )
    model, info = loaded
    if info["missing_keys"]:
        # transformers would fill them with random numbers, different on every machine.
        raise ModelFolderError(f"has no weights for {', '.join(sorted(info['missing_keys'])[:3])}")
    return LoadedModel(model.eval(), tokenizer, found)


def _commit(spec: ModelSpec) -> str | None:
    """Returns the commit of a hub model's revision, the same for all files; the revision if the hub does not say."""
    from transformers.utils.hub import resolve_revision

    return resolve_revision(spec.source, spec.revision)


def _forget_dtype(config: Any) -> None:
    """Makes the loading library use the type of the weights, not the one in the configuration."""
    for each in (config, *(getattr(config, name) for name in config.sub_configs)):
        if each is not None:
            each.dtype = None


def _fetch(source: str, revision: str | None) -> Files:
    """Downloads the files that define a model on the hub, or reads them from the cache without a connection.

    With a connection, a file counts as absent only if the hub reports this.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.constants import is_offline_mode
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    paths = list[Path]()
    for name in sorted(definition.NAMES):
        try:
            paths.append(Path(hf_hub_download(source, name, revision=revision)))
        except LocalEntryNotFoundError:
            if not is_offline_mode():
                raise
        except EntryNotFoundError:
            pass
    with untrusted_files.allowed_roots(None):  # the cache belongs to the hub library
        found = {path.name: definition.content(path) for path in paths}
    if CONFIG not in found:
        raise ModelFolderError(
            f"has no {CONFIG}: not a Hugging Face model, or not in the cache of a machine that is offline"
        )
    return found


def _defined(spec: ModelSpec, found: Files, weights: Weights | None) -> tuple[Any, Any]:
    """Creates configuration and tokenizer from the files in ``found`` alone."""
    from transformers import AutoConfig, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    definition.require_own(found)
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    with definition.unpacked(found) as folder:
        config: Any = AutoConfig.from_pretrained(str(folder), **options)
        if weights is not None:
            _check_size(config, weights)
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), **options)
    config.name_or_path = tokenizer.name_or_path = spec.source
    return config, tokenizer


def skeleton(spec: ModelSpec, *, anywhere: bool = False) -> LoadedModel | None:
    """Returns the model of ``spec`` without numbers, with parameters on the meta device and buffers on the CPU, and its
    tokenizer.

    None for a name on the hub. Checks the folder and raises errors like :func:`load`.
    """
    own = untrusted_files.allowed_roots(None) if anywhere else nullcontext()
    with own, _typed(spec), memory_checked(REMEDY), _ONE_AT_A_TIME:
        weights = _look(spec)
        if weights is None:
            return None
        loaded = _skeleton(spec, weights)
        _check_ids(loaded)
        return loaded


def _skeleton(spec: ModelSpec, weights: Weights) -> LoadedModel:
    from transformers import AutoModelForCausalLM, GenerationConfig

    found = definition.read(Path(spec.source).expanduser())
    config, tokenizer = _defined(spec, found, weights)
    with torch.random.fork_rng([]), _parameters_on_meta():
        model: Any = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, spec.dtype))
    if GENERATION_CONFIG in found:
        with definition.unpacked(found) as folder:
            model.generation_config = GenerationConfig.from_pretrained(str(folder), local_files_only=True)
    return LoadedModel(model.eval(), tokenizer, found)


@contextmanager
def _parameters_on_meta() -> Generator[None]:
    """Allocates no memory for parameters registered in the block. Existing, tied ones stay the same object."""
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


def _check_size(config: Any, weights: Weights) -> None:
    """Raises ``ModelFolderError`` if the configuration describes a much larger model than its weights: the rest would
    be made up.

    The model is built on the meta device for this, without memory. Twice the size is accepted: the file has tied
    weights once.
    """
    from transformers import AutoModelForCausalLM

    with torch.random.fork_rng([]), torch.device("meta"):
        described = sum(weight.numel() for weight in AutoModelForCausalLM.from_config(deepcopy(config)).parameters())
    if described > 2 * weights.elements:
        raise ModelFolderError(f"config.json describes {described} parameters, the weights hold {weights.elements}")


def _check_ids(loaded: LoadedModel) -> None:
    """Raises ``ModelFolderError`` if tokens have no embedding: training would fail in the middle of a step."""
    rows = cast(Any, loaded.model).get_input_embeddings().weight.shape[0]
    ids = loaded.tokenizer.get_vocab().values()
    if ids and not 0 <= max(ids) < rows:
        raise ModelFolderError(f"its tokenizer has tokens up to {max(ids)}, its embeddings end before {rows}")


def _look(spec: ModelSpec) -> Weights | None:
    """Returns the contents of a local folder; None for a name on the hub."""
    path = Path(spec.source).expanduser()
    parts = path.parts
    local = path.is_absolute() or spec.source.startswith((".", "~")) or ".." in parts or len(parts) > 2
    if not local and not path.exists():
        return None
    real = untrusted_files.allowed(path)
    if not real.is_dir():
        raise ModelFolderError("is not a folder")
    return inspect_folder(real)


@contextmanager
def _typed(spec: ModelSpec) -> Generator[None]:
    """Converts any exception to an error without contents of the files; the log has all details.

    The loading library raises arbitrary exceptions for unexpected files, and panics of its Rust parts are not even
    ``Exception``.
    """
    try:
        yield
    except FerretError:
        raise
    except (ModelFolderError, untrusted_files.UntrustedFileError) as error:
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
