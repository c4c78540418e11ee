"""GGUF files: converted once to safetensors and tokenizer.json, which load as a memory map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zicl._util.files import file_hash, home, read_json, write_json, writing
from zicl._util.process import quiet
from zicl._util.progress import ProgressReport, silent
from zicl.exceptions import ModelError, ModelNotFoundError, first_line

NOTE = "zicl.json"


def converted(path: Path, *, report: ProgressReport = silent) -> Path:
    """The folder with the converted form of a GGUF file, made on first use and kept by content."""
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}", hint="give the path of a .gguf file")
    digest = file_hash(path)
    folder = home() / "converted" / digest[:32]
    if not (folder / NOTE).is_file():
        report("converting", 0, None, f"{path.name}: once, half a minute or more")
        with writing(folder) as temporary:
            temporary.mkdir(parents=True)
            convert(path, temporary)
    return folder


def convert(path: Path, folder: Path) -> None:
    """Write the model in ``path`` to ``folder``; the note with its hash and BOS rule is written last."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    adds_bos = _adds_bos(path)
    place: dict[str, Any] = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    try:
        with quiet():
            loaded = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, output_loading_info=True)
            tokenizer = AutoTokenizer.from_pretrained(**place)
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ModelError(
            f"{path.name} could not be read: {first_line(error)}",
            hint="transformers reads the GGUF files of most Llama, Qwen, Gemma and GPT-2 models; use the "
            "original weights (hf:…) for others",
        ) from error
    model = check_all_weights(path.name, *loaded)
    # Dequantised weights are ordinary ones; transformers refuses to save them while they are marked as quantised.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    with quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_json(folder / NOTE, {"gguf_sha256": file_hash(path), "adds_bos": adds_bos})


def read_note(folder: Path) -> dict[str, Any]:
    """What conversion noted about a folder; empty for folders from elsewhere."""
    note = folder / NOTE
    return dict(read_json(note)) if note.is_file() else {}


def _adds_bos(path: Path) -> bool:
    """The file's own word on whether a text begins with the beginning-of-sequence token."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
    except (ValueError, OSError, IndexError, KeyError) as error:
        # The reader of a file that ends too early looks for what is not there.
        raise ModelError(
            f"{path.name} is not a GGUF file, or not a whole one: {error}",
            hint="give the path of a .gguf file, or fetch it again",
        ) from error
    field = reader.get_field("tokenizer.ggml.add_bos_token")
    if field is not None:
        return bool(field.contents())
    kind = reader.get_field("tokenizer.ggml.model")
    # Without the key, llama.cpp's rule: SentencePiece models begin with the token, byte-level ones do not.
    return kind is not None and str(kind.contents()) == "llama"


def check_all_weights(spec: str, model: Any, info: dict[str, Any]) -> Any:
    """The model, if all of its weights were there: missing ones would be random numbers, others at every start."""
    if missing := sorted(info["missing_keys"]):
        raise ModelError(
            f"{spec} has no weights for {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}",
            hint="it was saved for another purpose, such as classification: use the causal language model itself",
        )
    return model
