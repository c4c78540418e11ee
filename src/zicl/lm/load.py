"""Load a language model by its name: a catalog entry, hub id, folder, GGUF file or the address of a server."""

from __future__ import annotations

import contextlib
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

from zicl._util.catalog import find_asset
from zicl._util.hub import can_reach_hub, check_model_name, not_fetched
from zicl._util.process import quiet
from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ModelError, ModelNotFoundError, first_line
from zicl.lm.base import DEFAULT_LM, LanguageModel
from zicl.lm.batching import is_out_of_memory, too_large_error
from zicl.lm.devices import Placement, pick_device
from zicl.lm.gguf import converted_folder, read_note
from zicl.lm.hf import HFLanguageModel
from zicl.lm.linear import pack_linear_layers
from zicl.lm.remote.settings import RemoteSettings, is_remote
from zicl.lm.tokenizer import PlainTokenizer
from zicl.lm.weights import check_all_weights, hash_weights, use_huge_pages


def load_lm(
    spec: str = DEFAULT_LM,
    *,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int = 8,
    offline: bool = False,
    remote: RemoteSettings | None = None,
    report: ProgressReport = silent,
) -> LanguageModel:
    """Load ``spec``: a catalog name, ``hf:ID`` or ``hf:ID@REVISION``, a folder, ``gguf:FILE``, ``http://HOST/v1#ID``.

    ``remote`` are the settings for a model on a server. For a model on this machine, ``device`` is one device or a map
    over several (``map:auto``), and ``dtype`` is float32, bfloat16, float16 or int8.
    """
    if is_remote(spec):
        from zicl.lm.remote.open import open_remote

        return open_remote(spec, remote, offline=offline, load_tokenizer=partial(load_tokenizer, offline=offline))
    return load_local(spec, device=device, dtype=dtype, batch_size=batch_size, offline=offline, report=report)


def load_local(
    spec: str = DEFAULT_LM,
    *,
    device: str = "auto",
    dtype: str = "float32",
    batch_size: int = 8,
    offline: bool = False,
    report: ProgressReport = silent,
) -> HFLanguageModel:
    """Load a model that runs in this process."""
    placement = Placement(device, dtype)
    # Before anything is downloaded: the device may be missing.
    where = placement.options()
    source, options = _source(spec, offline=offline, report=report)
    # Only the progress of a download is shown.
    with quiet() if options["local_files_only"] else contextlib.nullcontext():
        tokenizer = _load_tokenizer(spec, source, options)
        model = _load_model(spec, source, {**options, **where})
    note = read_note(Path(source)) if Path(source).is_dir() else {}
    weights = note.get("gguf_sha256") or getattr(model.config, "_commit_hash", None) or hash_weights(Path(source))
    if placement.device_map is None:
        model = _move(spec, model, pick_device(device))
        pack_linear_layers(model)
        use_huge_pages(model)
    return HFLanguageModel(
        model,
        tokenizer,
        name=spec,
        identity=_identity(weights, tokenizer),
        revision=weights,
        adds_bos=note.get("adds_bos"),
        batch_size=batch_size,
    )


def load_tokenizer(spec: str, *, offline: bool = False) -> PlainTokenizer:
    """Load the tokenizer of a model without its weights; takes the same names as ``load_lm``, without servers."""
    source, options = _source(spec, offline=offline, report=silent)
    with quiet():
        return PlainTokenizer(_load_tokenizer(spec, source, options), spec)


def _source(spec: str, *, offline: bool, report: ProgressReport) -> tuple[str, dict[str, Any]]:
    """Return the folder or hub id of a name, and the options for ``from_pretrained``."""
    source, revision = resolve_model(spec, offline=offline, report=report), ""
    if not Path(source).is_dir():
        source, _, revision = source.partition("@")
    if revision and Path(source).is_dir():
        raise ModelError(
            f"{spec} names a revision, but {source} is a folder here, and folders have no revisions",
            hint=f"name the folder without a revision, ./{source}, or run from a place without such a folder",
        )
    local = offline or Path(source).is_dir() or not can_reach_hub(source, revision)
    options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
    return source, {**options, "revision": revision} if revision else options


def resolve_model(spec: str, *, offline: bool = False, report: ProgressReport = silent) -> str:
    """Return the folder or hub id of a name; download or convert the model if necessary."""
    if spec.startswith("gguf:") or spec.endswith(".gguf"):
        return str(converted_folder(Path(spec.removeprefix("gguf:")).expanduser(), report=report))
    if spec.startswith("hf:"):
        return spec.removeprefix("hf:")
    check_model_name(spec, "lm")
    if (fetched := find_asset(spec, offline=offline, report=report)) is not None:
        return str(fetched)
    return str(Path(spec).expanduser()) if Path(spec).expanduser().is_dir() else spec


def _load_model(spec: str, source: str, options: dict[str, Any]) -> Any:
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        loaded = AutoModelForCausalLM.from_pretrained(source, **options, output_loading_info=True)
        return check_all_weights(spec, *loaded)
    except (OSError, ValueError, KeyError) as error:
        if "device_map" in options and isinstance(error, ValueError):
            raise ModelError(
                f"{spec} cannot be placed on these devices: {first_line(error)}",
                hint="use map:auto, which places every module; int8 weights need CUDA devices",
            ) from error
        raise _not_found(spec, source, error, options) from error
    except (RuntimeError, MemoryError, SafetensorError) as error:
        if is_out_of_memory(error):
            raise too_large_error(spec, error) from error
        raise ModelError(
            f"the weights of {spec} could not be read: {first_line(error)}",
            hint="download the model again: a file may be truncated or belong to another config.json",
        ) from error


def _move(spec: str, model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise too_large_error(spec, error) from error


def _load_tokenizer(spec: str, source: str, options: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    missing = ModelError(
        f"{spec} comes without a readable tokenizer",
        hint="put its tokenizer.json beside the weights, or use another copy of the model",
    )
    folder = Path(source)
    if folder.is_dir() and not any((folder / n).exists() for n in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise missing
    try:
        return AutoTokenizer.from_pretrained(source, **options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if folder.is_dir():
            raise missing from error
        raise _not_found(spec, source, error, options) from error


def _not_found(spec: str, source: str, error: Exception, options: dict[str, Any]) -> ModelError:
    if options["local_files_only"] and not Path(source).is_dir():
        return not_fetched(spec, error)
    return ModelNotFoundError(
        f"the language model {spec!r} could not be loaded: {first_line(error)}",
        hint="check the name and the network; zicl models list shows models that do not need the hub",
    )


def _identity(weights: str, tokenizer: Any) -> str:
    """Return a hash of weights and tokenizer that is the same on every machine."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    content = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    return hashlib.sha256(f"{weights}|{hashlib.sha256(content.encode()).hexdigest()}".encode()).hexdigest()
