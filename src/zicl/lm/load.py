"""Models all of whose weights were there."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from zicl._util.catalog import catalog, find_asset
from zicl._util.files import file_hash
from zicl._util.process import quiet
from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ModelError, ModelNotFoundError, OfflineError, first_line
from zicl.lm.base import LanguageModel
from zicl.lm.batching import out_of_memory, too_large_error
from zicl.lm.devices import Placement, pick_device, use_huge_pages
from zicl.lm.gguf import check_all_weights, converted, read_note
from zicl.lm.hf import HFLanguageModel
from zicl.lm.remote.settings import RemoteSettings, is_remote
from zicl.lm.tokenizer import PlainTokenizer

# -- From a name to a language model: catalog, hub id, folder, GGUF file or the address of a server.


DEFAULT_LM = "smollm2-135m"
# Files up to this size are hashed whole, larger ones by their size and pieces spread over them.
_WHOLE, _PIECE, _PIECES = 64 << 20, 1 << 18, 64


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

    ``remote`` says how a model behind a server is asked. For a model that is loaded here, ``device`` is one device or a
    map over several (``map:auto``), ``dtype`` float32, bfloat16, float16 or int8.
    """
    if is_remote(spec):
        from functools import partial

        from zicl.lm.remote.model import open_remote

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
    where = placement.options()
    place, options = _place(spec, offline=offline, report=report)
    local = Path(place).is_dir()
    # A download from the hub shows its own progress; nothing else needs to be seen.
    with quiet() if options["local_files_only"] else contextlib.nullcontext():
        tokenizer = _load_tokenizer(spec, place, options)
        model = _load_model(spec, place, {**options, **where}, offline=offline)
    note = read_note(Path(place)) if local else {}
    weights = note.get("gguf_sha256") or getattr(model.config, "_commit_hash", None) or _folder_hash(Path(place))
    if placement.device_map is None:
        model = _moved(spec, model, pick_device(device))
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
    """The tokenizer of a model alone; takes the names that ``load_lm`` takes."""
    place, options = _place(spec, offline=offline, report=silent)
    with quiet():
        return PlainTokenizer(_load_tokenizer(spec, place, options), spec)


def _place(spec: str, *, offline: bool, report: ProgressReport) -> tuple[str, dict[str, Any]]:
    """The folder or hub id behind a name, and how transformers is to load from there."""
    place, revision = resolve(spec, offline=offline, report=report), ""
    if not Path(place).is_dir():
        place, _, revision = place.partition("@")
    if revision and Path(place).is_dir():
        raise ModelError(
            f"{spec} names a revision, which a folder has not, and there is a folder {place} here",
            hint=f"name the folder without a revision, ./{place}, or work where there is no such folder",
        )
    options: dict[str, Any] = {"local_files_only": offline or Path(place).is_dir(), "trust_remote_code": False}
    return place, {**options, "revision": revision} if revision else options


def resolve(spec: str, *, offline: bool = False, report: ProgressReport = silent) -> str:
    """The folder or hub id behind a name; fetches and converts if need be."""
    if spec.startswith("gguf:") or spec.endswith(".gguf"):
        return str(converted(Path(spec.removeprefix("gguf:")).expanduser(), report=report))
    if spec.startswith("hf:"):
        return spec.removeprefix("hf:")
    if spec in catalog():
        if catalog()[spec].kind != "lm":
            raise ModelError(f"{spec} is not a language model", hint="zicl models list shows which entries are")
        return str(find_asset(spec, offline=offline, report=report))
    if Path(spec).expanduser().is_dir():
        return str(Path(spec).expanduser())
    if "/" not in spec or spec.startswith((".", "/", "~")):
        raise ModelNotFoundError(
            f"there is no language model {spec!r}",
            hint=f"name a catalog model ({', '.join(n for n, a in catalog().items() if a.kind == 'lm')}), "
            "a folder, hf:OWNER/NAME, gguf:FILE, or the address of a server: http://HOST:PORT/v1#NAME",
        )
    return spec


def _load_model(spec: str, place: str, options: dict[str, Any], *, offline: bool) -> Any:
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        return check_all_weights(
            spec, *AutoModelForCausalLM.from_pretrained(place, **options, output_loading_info=True)
        )
    except (OSError, ValueError, KeyError) as error:
        if "device_map" in options and isinstance(error, ValueError):
            raise ModelError(
                f"{spec} cannot be placed as it was asked for: {first_line(error)}",
                hint="map:auto finds a place for every part; int8 weights lie on CUDA devices only",
            ) from error
        raise _not_loaded(spec, error, offline) from error
    except (RuntimeError, MemoryError, SafetensorError) as error:
        if out_of_memory(error):
            raise too_large_error(spec, error) from error
        raise ModelError(
            f"the weights of {spec} could not be read: {first_line(error)}",
            hint="the file may be cut short or belong to another config.json: fetch the model again",
        ) from error


def _moved(spec: str, model: Any, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise too_large_error(spec, error) from error


def _load_tokenizer(spec: str, place: str, options: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer

    missing = ModelError(
        f"{spec} comes without a tokenizer that can be read",
        hint="put its tokenizer.json beside the weights, or use another copy of the model",
    )
    folder = Path(place)
    if folder.is_dir() and not any((folder / n).exists() for n in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise missing
    try:
        return AutoTokenizer.from_pretrained(place, **options)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if folder.is_dir():
            raise missing from error
        raise _not_loaded(spec, error, options["local_files_only"]) from error


def _not_loaded(spec: str, error: Exception, offline: bool) -> ModelError:
    first = first_line(error)
    if offline:
        return OfflineError(f"{spec} is not on this machine: {first}", hint="run once without --offline to fetch it")
    return ModelNotFoundError(
        f"the language model {spec!r} could not be loaded: {first}",
        hint="check the name and the network; zicl models list shows what needs no hub",
    )


def _identity(revision: str, tokenizer: Any) -> str:
    """A hash of weights and tokenizer, the same on every machine."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    words = backend.to_str() if backend is not None else repr(sorted(tokenizer.get_vocab().items()))
    return hashlib.sha256(f"{revision}|{hashlib.sha256(words.encode()).hexdigest()}".encode()).hexdigest()


def _folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin"), folder / "config.json"]):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}:".encode())
        if size <= _WHOLE:
            digest.update(file_hash(path).encode())
            continue
        with path.open("rb") as stream:
            for piece in range(_PIECES):
                stream.seek(size * piece // _PIECES)
                digest.update(stream.read(_PIECE))
    return digest.hexdigest()
