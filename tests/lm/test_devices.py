"""Models in other dtypes and on other devices: the options for transformers, and the same scores everywhere."""

import json

import numpy as np
import pytest
import torch

from tests.conftest import byte_tokenizer, tiny_lm, tiny_model
from tests.lm.test_batching import make_prompts
from zicl.config import Scoring
from zicl.exceptions import ConfigError, ModelError
from zicl.lm import devices as placement
from zicl.lm.devices import Placement
from zicl.lm.heads import Head, last_token_attention, silence_heads
from zicl.lm.hf import HFLanguageModel
from zicl.lm.load import load_lm

LAYERS = {
    "model.embed_tokens": "cpu", "model.rotary_emb": "cpu", "model.layers.0": "disk", "model.layers.1": "cpu",
    "model.layers.2": "disk", "model.norm": "cpu", "lm_head": "disk",
}  # fmt: skip


def mapped(device_map):
    return f"map:{json.dumps(device_map)}"


def farthest(found, expected):
    return max(
        float(np.abs(a - b).max()) for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)
    )


@pytest.mark.parametrize(
    "device_map", [{"": "cpu"}, {"": "disk"}, LAYERS, "auto"], ids=["one device", "disk", "layers", "auto"]
)
def test_a_model_spread_over_places_scores_the_same(lm_folder, device_map):
    device = f"map:{device_map}" if isinstance(device_map, str) else mapped(device_map)
    whole, spread = load_lm(str(lm_folder)), load_lm(str(lm_folder), device=device)
    assert spread.supports_trees
    assert spread.identity == whole.identity
    assert spread.forward.device == torch.device("cpu")
    waits = any(weight.device.type == "meta" for weight in spread.forward.model.parameters())
    assert waits == ("disk" in device)
    for shared in (True, False):
        prompts = make_prompts(shared=shared, count=5)
        expected = whole.score(prompts)
        assert farthest(spread.score(prompts), expected) < 1e-5
        with silence_heads(whole, [Head(1, 2)]), silence_heads(spread, [Head(1, 2)]):
            without = whole.score(prompts)
            assert farthest(spread.score(prompts), without) < 1e-5
        assert farthest(without, expected) > 1e-3
    tokens = range(5, 40)
    assert np.abs(last_token_attention(spread, tokens) - last_token_attention(whole, tokens)).max() < 1e-5


@pytest.mark.parametrize("family", ["gpt2", "gptj", "neox", "gemma3"])
def test_families_are_read_from_disk_layer_by_layer(family, tmp_path):
    tiny_model(family).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    whole, spread = load_lm(str(tmp_path)), load_lm(str(tmp_path), device=mapped({"": "disk"}))
    assert spread.supports_trees
    for shared in (True, False):
        prompts = make_prompts(shared=shared, count=4)
        assert farthest(spread.score(prompts), whole.score(prompts)) < 1e-5


@pytest.mark.parametrize("device", ["cpu", mapped(LAYERS)], ids=["cpu", "layers"])
def test_bfloat16_is_near_float32_and_scored_in_float32(lm_folder, device):
    whole, half = load_lm(str(lm_folder)), load_lm(str(lm_folder), device=device, dtype="bfloat16")
    assert half.forward.dtype == torch.bfloat16
    for shared in (True, False):
        prompts = make_prompts(shared=shared)
        found, expected = half.score(prompts), whole.score(prompts)
        assert all(row.dtype == np.float32 for score in found for row in score)
        # Eight bits a number through three layers of large random weights: a tenth on average, below one at worst.
        assert farthest(found, expected) < 1
        mean = [np.abs(a - b).mean() for x, y in zip(found, expected, strict=True) for a, b in zip(x, y, strict=True)]
        assert np.mean(mean) < 0.1


@pytest.mark.parametrize(
    "device", ["map:", "map:nowhere", "map:{}", 'map:["cpu"]', 'map:{"": null}', "map:{'': 'cpu'}"]
)
def test_a_map_that_cannot_be_read_is_found_at_once(device):
    with pytest.raises(ConfigError, match="is no map"):
        Placement(device)
    with pytest.raises(ValueError, match="is no map"):
        Scoring(device=device)


@pytest.mark.parametrize("device", ["cuda:99", "mps:7", "meta", "lamp", mapped({"": "cuda:99"})])
def test_a_device_that_is_not_here_is_said_before_loading(device):
    with pytest.raises(ConfigError, match="cannot be used here") as error:
        load_lm("no such model", device=device)
    assert "cpu" in error.value.hint


def test_a_map_that_leaves_parts_out_is_an_error(lm_folder):
    with pytest.raises(ModelError, match="cannot be placed"):
        load_lm(str(lm_folder), device=mapped({"model.embed_tokens": "cpu", "model.layers.0": "disk"}))


def test_int8_says_what_it_needs(lm_folder, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ModelError, match="need a CUDA device") as error:
        load_lm(str(lm_folder), dtype="int8")
    assert "bfloat16" in error.value.hint
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(placement, "find_spec", lambda _: None)
    with pytest.raises(ModelError, match="need bitsandbytes") as error:
        load_lm(str(lm_folder), dtype="int8")
    assert "zicl[int8]" in error.value.hint


@pytest.mark.parametrize(
    ("device", "expected"), [("auto", {"": "cuda"}), ("cuda:1", {"": "cuda:1"}), ("map:auto", "auto")]
)
def test_int8_is_asked_of_bitsandbytes_as_transformers_documents(device, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(placement, "find_spec", lambda _: object())
    monkeypatch.setattr(placement, "check_device", lambda _: None)
    options = Placement(device, "int8").options()
    assert options.pop("quantization_config").load_in_8bit
    assert options == {"dtype": torch.float16, "device_map": expected}


def test_int8_scores_each_label_alone(caplog):
    """The columns that bitsandbytes leaves in half precision are chosen by all tokens of a matrix together."""
    model = tiny_model("llama")
    # What transformers sets on such a model.
    model.is_loaded_in_8bit = True
    lm = HFLanguageModel(model, byte_tokenizer(), name="tiny", identity="tiny")
    assert not lm.supports_trees
    assert not caplog.records
    rows = []
    lm.forward.body.register_forward_pre_hook(
        lambda _, given, options: rows.append(options["input_ids"].shape[0]), with_kwargs=True
    )
    assert (
        farthest(lm.score(make_prompts(shared=True, count=2)), tiny_lm().score(make_prompts(shared=True, count=2)))
        < 1e-4
    )
    assert rows == [1] * 6


def test_weights_that_do_not_fit_are_an_error(lm_folder, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(torch.nn.Module, "to", full)
    with pytest.raises(ModelError, match=r"weights of .* do not fit into memory: CUDA out of memory") as error:
        load_lm(str(lm_folder))
    assert "map:auto" in error.value.hint
