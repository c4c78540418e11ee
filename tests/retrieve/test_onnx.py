"""ONNX encoders: conversion to float32, vectors that depend on nothing but their text, and errors."""

import copy
import json
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from tests.conftest import DOCUMENTS
from zicl import ZICLClassifier
from zicl.exceptions import MemoryLimitError, ModelError, PileWarning, StorageError, UsageError, ZICLError
from zicl.retrieve.encoder import DEFAULT_ENCODER, SentenceEncoder, cuts, load_encoder
from zicl.retrieve.onnx import OnnxEncoder, convert

SENTENCES = [sentence for text in DOCUMENTS for sentence in text.split(". ")]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = sorted({word.strip(".").lower() for text in DOCUMENTS for word in text.split()})


def half_precision_model(path):
    """One layer of masked attention over float16 vectors of words, as exporters write it."""
    from onnx import TensorProto, helper, numpy_helper, save

    generator, half = np.random.default_rng(5), TensorProto.FLOAT16

    def weights(name, *shape):
        return numpy_helper.from_array(generator.normal(size=shape).astype(np.float16), name)

    def node(kind, inputs, output, **attributes):
        return helper.make_node(kind, inputs.split(), [output], **attributes)

    far_off = numpy_helper.from_array(np.array(-10_000, dtype=np.float16))
    graph = helper.make_graph(
        [
            node("Gather", "words input_ids", "word"),
            node("Gather", "segments token_type_ids", "segment"),
            node("Add", "word segment", "states"),
            node("MatMul", "states query", "queries"),
            node("Transpose", "states", "keys", perm=[0, 2, 1]),
            node("MatMul", "queries keys", "similarities"),
            node("Cast", "attention_mask", "mask", to=half),
            node("Sub", "one mask", "unused"),
            node("Constant", "", "far_off", value=far_off),
            node("Mul", "unused far_off", "penalty"),
            node("Unsqueeze", "penalty axis", "penalties"),
            node("Add", "similarities penalties", "masked"),
            node("Softmax", "masked", "attention", axis=-1),
            node("MatMul", "attention states", "attended"),
            node("Cast", "attended", "last_hidden_state", to=TensorProto.FLOAT),
        ],
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "tokens", 8])],
        [
            weights("words", len(SPECIAL) + len(WORDS), 8),
            weights("segments", 2, 8),
            weights("query", 8, 8),
            numpy_helper.from_array(np.array(1, dtype=np.float16), "one"),
            numpy_helper.from_array(np.array([1]), "axis"),
        ],
        value_info=[helper.make_tensor_value_info("states", half, ["batch", "tokens", 8])],
    )
    for each in graph.node:
        if each.op_type == "Constant":
            del each.input[:]
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_tokenizer(path):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published tokenizers have it; the encoder does its own padding and cutting.
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(128)
    tokenizer.save(str(path))


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "half.onnx"
    half_precision_model(path)
    return path


def make_folder(folder, original, **options):
    folder.mkdir()
    write_tokenizer(folder / "tokenizer.json")
    convert(original, folder, **{"pooling": "cls", **options})
    return folder


@pytest.fixture
def folder(tmp_path, original):
    return make_folder(tmp_path / "tiny", original)


def run_file(path, ids):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ones = np.ones_like(ids)
    return session.run(None, {"input_ids": ids, "attention_mask": ones, "token_type_ids": 0 * ones})[0]


def test_conversion_gives_float32_and_the_same_outputs(folder, original, tmp_path):
    import onnx

    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    constants = [a.t for n in model.graph.node for a in n.attribute if n.op_type == "Constant"]
    types = {tensor.data_type for tensor in (*model.graph.initializer, *constants)}
    types |= {a.i for n in model.graph.node for a in n.attribute if n.op_type == "Cast"}
    assert types == {onnx.TensorProto.FLOAT, onnx.TensorProto.INT64}
    assert not model.graph.value_info
    ids = np.array([[2, 9, 11, 40, 3]])
    before, after = run_file(original, ids), run_file(folder / "model.onnx", ids)
    assert np.abs(before - after).max() < 0.02
    assert np.abs(after).max() > 0.5
    # A float32 file is left as it is.
    again = make_folder(tmp_path / "again", folder / "model.onnx", pooling="mean", max_tokens=9)
    assert (again / "model.onnx").read_bytes() == (folder / "model.onnx").read_bytes()
    assert json.loads((again / "encoder.json").read_text()) == {"pooling": "mean", "max_tokens": 9}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_vector_depends_on_its_text_alone(tmp_path, original, pooling):
    encoder = load_encoder(str(make_folder(tmp_path / "tiny", original, pooling=pooling)))
    together = encoder.encode(SENTENCES)
    assert together.dtype == np.float32
    assert together.shape == (len(SENTENCES), encoder.dimension) == (30, 8)
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-6
    assert len({row.tobytes() for row in together}) == 30
    alone = np.concatenate([encoder.encode([text]) for text in SENTENCES])
    assert np.abs(together - alone).max() < 1e-6
    order = np.random.default_rng(0).permutation(30)
    assert np.abs(encoder.encode([SENTENCES[i] for i in order]) - together[order]).max() < 1e-6
    # Far more padding than text.
    beside = encoder.encode([" ".join(SENTENCES), SENTENCES[0]])
    assert np.abs(beside[1] - together[0]).max() < 1e-6


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_pooling_is_what_its_name_says(tmp_path, original, pooling):
    folder = make_folder(tmp_path / "tiny", original, pooling=pooling)
    ids = [2, *(len(SPECIAL) + WORDS.index(word) for word in ("the", "soup", "was", "cold")), 3]
    states = run_file(folder / "model.onnx", np.array([ids]))[0]
    expected = states[0] if pooling == "cls" else states.mean(axis=0)
    [found] = load_encoder(str(folder)).encode(["The soup was cold"])
    assert np.abs(found - expected / np.linalg.norm(expected)).max() < 1e-6


def test_no_texts_and_long_texts(tmp_path, original, folder):
    encoder = load_encoder(str(folder))
    assert encoder.encode([]).shape == (0, 8)
    assert encoder.encode([]).dtype == np.float32
    # [CLS], three words, [SEP].
    short = load_encoder(str(make_folder(tmp_path / "short", original, max_tokens=5)))
    first, same, other = short.encode(["the soup was", "the soup was cold and thin", "the soup cold and thin"])
    assert np.abs(first - same).max() < 1e-6
    assert np.abs(first - other).max() > 1e-3
    assert [cuts(short, text) for text in ("the soup was", "soup", "the soup was cold", "the soup " * 99)] == [
        *(False, False),
        *(True, True),
    ]


def test_memory_that_runs_out_is_said_to_do_so(folder, monkeypatch):
    encoder = load_encoder(str(folder))

    def fail(rows):
        raise RuntimeError("Failed to allocate memory for requested buffer of size 1073741824")

    monkeypatch.setattr(encoder, "_forward", fail)
    with pytest.raises(MemoryLimitError, match="memory ran out"):
        encoder.encode(["the soup was"])


def test_what_was_fitted_is_saved_and_not_pickled(folder, tmp_path):
    unfitted = ZICLClassifier(labels=["soup", "train"], encoder=str(folder), offline=True)
    with pytest.warns(PileWarning):
        fitted = clone(unfitted).fit(["The soup was cold.", "The train was late."])
    for dump in (pickle.dumps, lambda each: joblib.dump(each, tmp_path / "clf.joblib")):
        with pytest.raises(UsageError, match="cannot be pickled") as error:
            dump(fitted)
        assert "clf.save(folder)" in error.value.hint
    # What scikit-learn does with a classifier needs no pickle of a fitted one.
    for copied in (copy.deepcopy(fitted), copy.copy(fitted)):
        assert copied.predict(["The soup."]).tolist() == fitted.predict(["The soup."]).tolist()
    for plain in (unfitted, clone(fitted)):
        assert pickle.loads(pickle.dumps(plain)).labels == ["soup", "train"]


def test_identity_is_the_content(tmp_path, original, folder):
    import shutil

    encoder = load_encoder(str(folder))
    assert isinstance(encoder, OnnxEncoder)
    assert encoder.name == str(folder)
    assert copy.deepcopy(encoder) is encoder
    shutil.copytree(folder, tmp_path / "copy")
    assert load_encoder(str(tmp_path / "copy")).identity == encoder.identity
    others = [
        make_folder(tmp_path / "a", original, pooling="mean"),
        make_folder(tmp_path / "b", original, max_tokens=9),
    ]
    identities = {encoder.identity, *(load_encoder(str(other)).identity for other in others)}
    assert len(identities) == 3


def test_any_other_folder_is_for_sentence_transformers(encoder_folder):
    assert isinstance(load_encoder(str(encoder_folder)), SentenceEncoder)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_damaged_folder_is_said_to_be_so(folder, file):
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="could not be loaded") as raised:
        load_encoder(str(folder))
    assert "zicl models pull" in raised.value.hint
    (folder / file).unlink()
    with pytest.raises(ModelError, match=f"there is no {file}") as raised:
        load_encoder(str(folder))
    assert file in raised.value.hint


@pytest.mark.parametrize(
    "settings", [{"pooling": "max", "max_tokens": 256}, {"pooling": "cls"}, {"pooling": "mean", "max_tokens": True}, []]
)
def test_settings_are_checked(folder, settings):
    (folder / "encoder.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match="pooling") as raised:
        load_encoder(str(folder))
    assert "cls, mean" in raised.value.hint
    (folder / "encoder.json").write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        load_encoder(str(folder))


def test_an_original_that_is_no_onnx_file(tmp_path):
    (tmp_path / "text.onnx").write_text("no model at all")
    with pytest.raises(ZICLError, match="could not be read"):
        convert(tmp_path / "text.onnx", tmp_path, pooling="cls")
    assert not (tmp_path / "model.onnx").exists()


def test_threads_are_those_of_the_process(monkeypatch):
    from zicl._util import process

    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert process.thread_count() == 3
    # One thread, as in all tests: torch and FAISS are set as well.
    process.use_threads(1)
    assert process.thread_count() == 1
    process.use_threads(None)
    assert process.thread_count() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert process.thread_count() >= 1


HEAVY = "[name for name in ('torch', 'transformers', 'sentence_transformers', 'onnx') if name in sys.modules]"


def imported_by(name):
    code = (
        "import sys\nfrom zicl.retrieve.encoder import load_encoder\n"
        f"load_encoder({name!r}, offline=True).encode(['The soup was cold.'])\nprint({HEAVY})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.strip()


def test_torch_is_not_imported(folder):
    assert imported_by(str(folder)) == "[]"


def test_the_command_line_has_the_same_default():
    import inspect

    from zicl.cli import corpus, index, labels
    from zicl.lab.evaluate.experiment import CorpusRecipe

    for command in (corpus.build, index.build, labels.suggest):
        assert inspect.signature(command).parameters["encoder"].default == DEFAULT_ENCODER
    assert CorpusRecipe(path="x").encoder == DEFAULT_ENCODER


@pytest.mark.real
def test_the_default_encoder():
    encoder = load_encoder(offline=True)
    texts = ["The film is great.", "A wonderful movie.", "The stock market fell.", " ".join(SENTENCES * 3)]
    vectors = encoder.encode(texts)
    assert vectors.shape == (4, 384)
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).max() < 1e-6
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    for text, vector in zip(texts, vectors, strict=True):
        assert np.abs(encoder.encode([text])[0] - vector).max() < 1e-6
    assert imported_by(DEFAULT_ENCODER) == "[]"
