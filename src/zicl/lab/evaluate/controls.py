"""Control methods without demonstrations: majority, cosine, logistic regression, and a chat instruction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from zicl.config import Retrieval
from zicl.exceptions import ConfigError, LabelError
from zicl.inputs.pair import Text
from zicl.lab.evaluate.training import TrainingIndex
from zicl.lm.base import LanguageModel
from zicl.prompt.builder import Branch, Prompt
from zicl.prompt.labels import Labels
from zicl.prompt.tokens import EMPTY, Segment, tokenize, truncate
from zicl.retrieve.strategies.base import Query
from zicl.score.factory import make_retriever

Scores = NDArray[np.float64]
Embed = Callable[[Text], NDArray[np.float32]]


def majority(counts: Mapping[str, int], labels: Labels) -> Scores:
    """Return the log share of each label in the full test set, the paper's first baseline."""
    with np.errstate(divide="ignore"):
        return np.log(np.array([counts.get(name, 0) for name in labels.names]) / sum(counts.values()))


def cosine(texts: Sequence[Text], phrases: Sequence[str], embed: Embed) -> Scores:
    """Return the cosine of each text to each label's phrase."""
    targets = np.stack([embed(phrase) for phrase in phrases])
    return np.stack([targets @ embed(text) for text in texts]).astype(np.float64)


def descriptions(task: str, labels: Labels) -> list[str]:
    """Return the descriptions of all labels, or an error that names those without one."""
    missing = [label.name for label in labels if not label.description]
    if missing:
        raise LabelError(
            f"{task}: the labels {', '.join(missing)} have no description, which cosine-descriptions compares with",
            hint="add description = … to the labels of the task, or leave the method out",
        )
    return [label.description for label in labels]


def gold_rows(index: TrainingIndex, k: int, seed: int) -> list[int]:
    """Return the k training examples that ICL-gold shows with this seed."""
    return [hit.row for hit in make_retriever(Retrieval(method="random", k=k)).retrieve(index, Query("", seed), k)]


def logistic(texts: Sequence[Text], index: TrainingIndex, labels: Labels, k: int, seed: int, embed: Embed) -> Scores:
    """Return log-probabilities of a logistic regression on the embeddings of ICL-gold's k examples."""
    from sklearn.linear_model import LogisticRegression

    rows = gold_rows(index, k, seed)
    gold = [index.examples[row].label for row in rows]
    scores = np.full((len(texts), len(labels)), -np.inf)
    if len(set(gold)) == 1:
        scores[:, labels.names.index(gold[0])] = 0.0
        return scores
    vectors = np.stack([embed(index.examples[row].text) for row in rows])
    model = LogisticRegression(max_iter=1000).fit(vectors, gold)
    predicted = model.predict_log_proba(np.stack([embed(text) for text in texts]))
    for column, name in enumerate(model.classes_):
        scores[:, labels.names.index(str(name))] = predicted[:, column]
    return scores


def instruction(text: Text, labels: Labels, lm: LanguageModel, limit: int) -> Prompt:
    """Return an instruction in the model's chat template; the label words are scored as its answer."""
    plain = str(text)
    shortened = truncate(lm.tokenizer, plain, limit)
    words = ", ".join(labels.words)
    message = f"Which label fits this text best? Answer with one of: {words}.\n\nText: {shortened.text}"
    tokens = chat_tokens(lm, message)
    branches = tuple(Branch(EMPTY, tokenize(lm.tokenizer, word)) for word in labels.words)
    input_cut = len(shortened) < len(lm.tokenizer.encode(plain))
    return Prompt(EMPTY, Segment(message, tokens), branches, input_cut=input_cut)


def chat_tokens(lm: LanguageModel, message: str) -> tuple[int, ...]:
    """Return the tokens of one user message, up to where the answer begins."""
    chat = getattr(lm.tokenizer, "chat", None)
    tokens = chat(message) if chat is not None else None
    if tokens is None:
        raise ConfigError(
            f"{lm.name} has no chat template, which the method 'instruction' needs",
            hint="leave the method out, or use an instruct model",
        )
    return tuple(tokens)
