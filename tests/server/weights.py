"""The default model as files that llama.cpp reads: as it was quantised, and the same weights in float32.

``python -m tests.server.weights`` makes both, as a part of the set-up; the tests themselves reach no network.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from zicl._util.catalog import get_asset, pull
from zicl._util.files import atomic_write, home

DEFAULT = "smollm2-135m"


def quantised() -> Path:
    """The file that the catalog's entry is converted from, kept as it is."""
    asset = replace(get_asset(DEFAULT), name=f"{DEFAULT}-gguf", convert="")
    return next(pull(asset).glob("*.gguf"))


def float32() -> Path:
    """The same model with every tensor dequantised: the very numbers that the transformers backend loads."""
    source = quantised()
    target = home() / "assets" / f"{DEFAULT}-float32.gguf"
    if not target.is_file():
        with atomic_write(target) as temporary:
            _dequantise(source, temporary)
    return target


def _dequantise(source: Path, target: Path) -> None:
    from gguf import GGUFReader, GGUFWriter, LlamaFileType
    from gguf.quants import dequantize

    reader = GGUFReader(source)
    writer = GGUFWriter(target, str(reader.get_field("general.architecture").contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    float32()
