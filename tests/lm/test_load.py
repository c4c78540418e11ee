"""Loading models from folders, GGUF files and the catalog, and the errors when that fails."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import byte_tokenizer, tiny_model
from zicl._util import packages
from zicl._util.catalog import Asset, catalog, get_asset, pull
from zicl.exceptions import (
    ConfigError,
    DownloadError,
    LicenceError,
    ModelError,
    ModelNotFoundError,
    OfflineError,
    StorageError,
    UnknownNameError,
)
from zicl.lm.load import load_lm, resolve_model
from zicl.lm.tokenizer import PlainTokenizer
from zicl.prompt.tokens import truncate


def test_a_folder_loads_and_its_identity_is_its_content(lm_folder, tmp_path):
    lm = load_lm(str(lm_folder), offline=True)
    assert lm.supports_trees
    assert not lm.adds_bos
    copy = tmp_path / "copy"
    shutil.copytree(lm_folder, copy)
    assert load_lm(str(copy)).identity == lm.identity
    # Only a model of the hub has a revision behind the sign.
    shutil.copytree(lm_folder, tmp_path / "me@home" / "model")
    assert load_lm(str(tmp_path / "me@home" / "model")).identity == lm.identity
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.1}))
    assert load_lm(str(copy)).identity != lm.identity


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_scores_near_float32_and_in_float32(lm_folder, dtype):
    from zicl.prompt.builder import Branch, Prompt
    from zicl.prompt.tokens import EMPTY, Segment

    prompt = Prompt(
        Segment("", (5, 6, 7)),
        EMPTY,
        (Branch(EMPTY, Segment("", (8, 9))), Branch(EMPTY, Segment("", (8, 10)))),
    )
    full, half = (
        load_lm(str(lm_folder)).score([prompt])[0],
        load_lm(str(lm_folder), dtype=dtype).score([prompt])[0],
    )
    for a, b in zip(full, half, strict=True):
        assert b.dtype == np.float32
        assert np.abs(a - b).max() < 0.3


def test_a_model_without_a_tokenizer_says_so(lm_folder, tmp_path):
    bare = tmp_path / "bare"
    tiny_model("llama").save_pretrained(bare)
    with pytest.raises(ModelError, match="without a readable tokenizer"):
        load_lm(str(bare))


def test_unknown_models_and_settings(lm_folder, tmp_path):
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2-135m'"):
        load_lm("smollm3")
    with pytest.raises(ModelError, match="is no language model"):
        load_lm("wordnet")
    with pytest.raises(ConfigError, match="unknown dtype"):
        load_lm(str(lm_folder), dtype="int3")
    with pytest.raises(OfflineError, match="not on this machine"):
        load_lm("hf:owner/name", offline=True)
    with pytest.raises(ModelNotFoundError, match="no file"):
        load_lm("gguf:nothing.gguf")
    (tmp_path / "x.gguf").write_bytes(b"not a model")
    with pytest.raises(ModelError, match="not a GGUF file"):
        load_lm(str(tmp_path / "x.gguf"))
    assert resolve_model("hf:owner/name") == "owner/name"


def test_bos_is_added_where_the_tokenizer_says_so():
    from tokenizers.processors import TemplateProcessing

    tokenizer = byte_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    assert PlainTokenizer(tokenizer, "x").adds_bos()
    assert not PlainTokenizer(byte_tokenizer(), "x").adds_bos()
    assert PlainTokenizer(tokenizer, "x").encode("lamp") == PlainTokenizer(byte_tokenizer(), "x").encode("lamp")


def test_tokenizers_that_put_a_space_before_their_text():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "▁", "\n", *sorted(set("abcdefghijklmnop :"))]
    raw = Tokenizer(models.BPE(vocab={p: i for i, p in enumerate(pieces)}, merges=[], unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    raw.decoder = decoders.Metaspace(prepend_scheme="never")
    tokenizer = PlainTokenizer(PreTrainedTokenizerFast(tokenizer_object=raw), "llama-like")
    for text in ("a", "\nabc", "a b", "\n\nabc de"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert not text.startswith("a") or tokenizer.encode(text)[0] == pieces.index("a")


# -- the catalog ----------------------------------------------------------------------------------


def test_every_entry_is_complete():
    for asset in catalog().values():
        assert len(asset.sha256) == 64
        assert all("==" in package for package in asset.packages)
        assert asset.licence
        assert asset.origin
        assert asset.hub or asset.instead
        assert asset.disk_megabytes
        for source in asset.sources:
            assert [len(digest) for digest in source.wheels] == [64] * len(source.packages)
    assert catalog()["gemma-3-270m"].ask
    with pytest.raises(UnknownNameError, match="did you mean 'wordnet'"):
        get_asset("wordnett")


@pytest.fixture
def parcel(tmp_path, monkeypatch):
    """An entry whose package is a local wheel: pip is not run, everything after it is."""
    import zipfile

    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    wheel = tmp_path / "parcel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("parcel/data/words.txt", "lamp\n")
    monkeypatch.delenv("ZICL_OFFLINE")
    monkeypatch.setattr(packages, "_download", lambda package, registry, scratch: Path(shutil.copy(wheel, scratch)))
    import hashlib

    digest = hashlib.sha256(b"lamp\n").hexdigest()
    whole = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return Asset("parcel", "words", "Words", "MIT", 1, ("parcel==1.0",), (whole,), "parcel/data/words.txt", digest)


def test_pull_checks_and_unpacks_once(parcel):
    folder = pull(parcel)
    assert (folder / "words.txt").read_text() == "lamp\n"
    assert parcel.is_fetched
    assert pull(parcel) == folder


def test_a_wrong_hash_leaves_nothing(parcel):
    from dataclasses import replace

    for wrong in (replace(parcel, sha256="0" * 64), replace(parcel, wheels=("0" * 64,))):
        with pytest.raises(DownloadError, match="has the hash") as error:
            pull(wrong)
        assert error.value.retry
        assert not wrong.folder.exists()


def test_a_licence_is_asked_for(parcel):
    from dataclasses import replace

    with pytest.raises(LicenceError, match="accepted first"):
        pull(replace(parcel, ask=True))
    assert pull(replace(parcel, ask=True), accept_licence=True).is_dir()


def test_a_read_only_cache_is_said(parcel, monkeypatch):
    import errno

    def refuse(self, *_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match="cannot be written") as error:
        pull(parcel)
    assert "ZICL_HOME" in error.value.hint


def test_a_failed_download_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path))
    monkeypatch.delenv("ZICL_OFFLINE")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    asset = Asset("none", "words", "None", "MIT", 1, ("zicl-no-such-package==1.0",), ("",), "x", "0" * 64)
    with pytest.raises(DownloadError, match="could not be fetched with pip"):
        pull(asset)
    assert not asset.folder.exists()
    monkeypatch.setenv("ZICL_OFFLINE", "1")
    with pytest.raises(OfflineError, match="not on this machine"):
        pull(asset)


def test_missing_weights_are_an_error_and_no_random_numbers(lm_folder, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(lm_folder, folder)
    weights = load_file(folder / "model.safetensors")
    assert weights.pop("lm_head.weight") is not None
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"has no weights for lm_head\.weight") as raised:
        load_lm(str(folder))
    assert "causal language model" in raised.value.hint


def test_damaged_weights_are_said_to_be_so(lm_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(lm_folder, folder)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="could not be"):
        load_lm(str(folder))
    (folder / "model.safetensors").write_bytes(whole)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 96}))
    with pytest.raises(ModelError, match="could not be"):
        load_lm(str(folder))


def test_a_revision_of_a_folder_is_refused(lm_folder, tmp_path, monkeypatch):
    shutil.copytree(lm_folder, tmp_path / "org" / "name")
    monkeypatch.chdir(tmp_path)
    assert load_lm("hf:org/name", offline=True).name == "hf:org/name"
    with pytest.raises(ModelError, match="names a revision, but org/name is a folder"):
        load_lm("hf:org/name@abc", offline=True)


def byte_fallback_tokenizer():
    """As Llama 2 has it: a space before whatever it is given, and unknown characters in single bytes."""
    from tokenizers import Tokenizer, decoders, models, normalizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"abcdefgh"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.mark.parametrize("text", ["漢字漢", "é漢 abc", "abc 漢字"])
def test_a_cut_inside_characters_of_single_bytes_moves_back_to_a_whole_one(text):
    tokenizer = PlainTokenizer(byte_fallback_tokenizer(), "fallback")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    for limit in range(1, len(tokenizer.encode(text)) + 1):
        shorter = truncate(tokenizer, text, limit)
        assert len(shorter) <= limit
        assert text.startswith(shorter.text)
    first = len(tokenizer.encode(text[0]))
    assert truncate(tokenizer, text, first).text == text[0]
