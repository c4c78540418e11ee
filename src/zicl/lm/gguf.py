"""GGUF files: convert them once to safetensors and tokenizer.json, which load as a memory map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from zicl._util.files import atomic_write, file_hash, home, read_json, write_json
from zicl._util.process import quiet
from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ModelError, ModelNotFoundError, first_line
from zicl.lm.gguf_header import check_header
from zicl.lm.weights import check_all_weights

# Written last into the folder of a converted model: the hash of the file, and whether prompts begin with BOS.
NOTE = "zicl.json"


def converted_folder(path: Path, *, report: ProgressReport = silent) -> Path:
    """Return the folder of a converted GGUF file; it is converted on first use and found again by its content."""
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}", hint="give the path of a .gguf file")
    folder = home() / "converted" / file_hash(path)[:32]
    if not (folder / NOTE).is_file():
        report("converting", 0, None, f"{path.name}: once, half a minute or more")
        with atomic_write(folder, replace=False) as temporary:
            temporary.mkdir(parents=True)
            convert(path, temporary)
    return folder


def convert(path: Path, folder: Path) -> None:
    """Convert a GGUF file and write the model to ``folder``."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    adds_bos = _adds_bos(path)
    source: dict[str, Any] = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        with quiet():
            loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32, output_loading_info=True)
            tokenizer = AutoTokenizer.from_pretrained(**source)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(
            f"{path.name} could not be read: {first_line(error)}",
            hint="transformers reads the GGUF files of most Llama, Qwen, Gemma and GPT-2 models; for others, use the "
            "original weights (hf:…)",
        ) from error
    model = check_all_weights(path.name, *loaded)
    # The weights are dequantised, but still marked as quantised, and transformers refuses to save such a model.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_json(folder / NOTE, {"gguf_sha256": file_hash(path), "adds_bos": adds_bos})


def read_note(folder: Path) -> dict[str, Any]:
    """Return the note about a converted model; empty for any other folder."""
    note = folder / NOTE
    return dict(read_json(note)) if note.is_file() else {}


def _adds_bos(path: Path) -> bool:
    """Return whether, according to the file, a text begins with the beginning-of-sequence token."""
    from gguf import GGUFReader

    try:
        check_header(path)
        reader = GGUFReader(path)
        field = reader.get_field("tokenizer.ggml.add_bos_token")
        if field is not None:
            return bool(field.contents())
        kind = reader.get_field("tokenizer.ggml.model")
        # Without the key, the rule of llama.cpp: SentencePiece models begin with the token, byte-level ones do not.
        return kind is not None and str(kind.contents()) == "llama"
    except (ValueError, OSError, LookupError, TypeError, OverflowError, MemoryError) as error:
        # The reader has no error of its own for a truncated or damaged file.
        raise ModelError(
            f"{path.name} is not a GGUF file, or an incomplete one: {first_line(error)}",
            hint="give the path of a .gguf file, or download it again",
        ) from error
