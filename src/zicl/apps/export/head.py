"""A classifier's formula as an ONNX graph, from the encoder's token vectors to probabilities.

The graph computes in double precision what ``EncoderExpert.scores`` and ``PileModel.join`` compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zicl.score.calibration import Scores
from zicl.score.ensemble import Ensemble
from zicl.score.experts import SCALE
from zicl.score.pile import ANCHOR, SHARPNESS, Linear, PileModel

# The versions that onnxruntime has read since 2022.
_OPSET, _IR = 17, 8


def ensemble_head(ensemble: Ensemble, pooling: str) -> bytes:
    """Return the graph of an ensemble whose only expert is the encoder."""
    expert, labels, pile = ensemble.encoder_expert, ensemble.labels, ensemble.pile
    assert expert is not None
    graph = _Graph()
    vectors = graph.pooled(pooling)
    targets, bias = expert.label_vectors(labels)
    experts = graph.linear(vectors, SCALE * targets, -SCALE * bias - ensemble.priors.get(expert.name, 0.0))
    if pile is None:
        return graph.finish(graph.node("Softmax", experts, axis=-1), len(labels))
    centred = expert.centred(labels) if pile.none is not None else None
    return graph.finish(_joined(graph, pile, experts, vectors, centred), len(ensemble.names))


def linear_head(linear: Linear, pooling: str) -> bytes:
    """Return the graph of a linear model."""
    graph = _Graph()
    scores = graph.linear(graph.pooled(pooling), linear.weights, linear.offsets)
    return graph.finish(graph.node("Softmax", scores, axis=-1), len(linear.offsets))


def _joined(
    graph: _Graph, pile: PileModel, experts: str, vectors: str, centred: tuple[NDArray[Any], NDArray[Any]] | None
) -> str:
    """Add what ``PileModel.join`` computes, and turn it into probabilities."""
    weight = pile.weight
    if pile.multi is not None:
        learned = graph.linear(vectors, weight * pile.linear.weights, weight * pile.linear.offsets)
        certain = graph.scaled(graph.node("LogSoftmax", experts, axis=-1), ANCHOR)
        evidence = graph.node("Add", certain, learned)
        total = graph.node("ReduceSum", evidence, graph.constant(np.array([1])), keepdims=1)
        compared = graph.node("Sub", evidence, graph.scaled(total, 1 / (len(pile.multi.slopes) + 1)))
        sloped = graph.node("Mul", compared, graph.constant(np.array(pile.multi.slopes)))
        return graph.node("Sigmoid", graph.node("Add", sloped, graph.constant(np.array(pile.multi.offsets))))
    offsets = weight * pile.linear.offsets
    if pile.shares_known:
        offsets = offsets + (1 - weight) * np.log(pile.shares)
    learned = graph.linear(vectors, SHARPNESS * weight * pile.linear.weights, SHARPNESS * offsets)
    sure = SHARPNESS * ANCHOR
    if pile.none is None or centred is None:
        return graph.node("Softmax", graph.node("Add", graph.scaled(experts, sure), learned), axis=-1)
    center, targets = centred
    directions = graph.unit(graph.node("Sub", vectors, graph.constant(center.astype(np.float64))), 1e-6)
    closeness = graph.node("MatMul", directions, graph.constant(targets.T.astype(np.float64)))
    nearest = graph.node("ReduceMax", closeness, axes=[1], keepdims=1)
    # The log-odds that a text fits no label: (threshold - closeness) / scale.
    scaled = graph.scaled(nearest, -1 / pile.none.scale)
    odds = graph.node("Add", scaled, graph.constant(np.array(pile.none.threshold / pile.none.scale)))
    if pile.none.component:
        extended = graph.scaled(graph.with_none(experts, odds), sure)
        return graph.node("Softmax", graph.node("Add", extended, learned), axis=-1)
    together = graph.node("Add", graph.scaled(experts, sure), learned)
    return graph.node("Softmax", graph.with_none(together, odds), axis=-1)


@dataclass
class _Graph:
    """An ONNX graph in the making; every method that adds something returns the name of its result."""

    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operation."""
        from onnx import helper

        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        """Add numbers."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def scaled(self, value: str, factor: float) -> str:
        """Multiply by a number."""
        return self.node("Mul", value, self.constant(np.array(float(factor))))

    def linear(self, vectors: str, weights: NDArray[Any], offsets: Scores) -> str:
        """Add a linear model, one row of weights per label."""
        product = self.node("MatMul", vectors, self.constant(weights.T.astype(np.float64)))
        return self.node("Add", product, self.constant(offsets.astype(np.float64)))

    def unit(self, vectors: str, smallest: float) -> str:
        """Scale vectors to unit length."""
        length = self.node("ReduceL2", vectors, axes=[1], keepdims=1)
        return self.node("Div", vectors, self.node("Max", length, self.constant(np.array(smallest))))

    def with_none(self, scores: str, odds: str) -> str:
        """Add a last column for none of the labels, as ``add_none`` does."""
        both = self.node("Concat", self.node("LogSoftmax", scores, axis=-1), odds, axis=1)
        return self.node("LogSoftmax", both, axis=-1)

    def pooled(self, pooling: str) -> str:
        """Make one unit vector of each text's token vectors."""
        from onnx import TensorProto

        states = self.node("Cast", "states", to=TensorProto.DOUBLE)
        if pooling == "cls":
            return self.unit(self.node("Gather", states, self.constant(np.array(0)), axis=1), 1e-12)
        mask = self.node("Cast", "mask", to=TensorProto.DOUBLE)
        axis = self.constant(np.array([1]))
        kept = self.node("Mul", states, self.node("Unsqueeze", mask, self.constant(np.array([2]))))
        count = self.node("Max", self.node("ReduceSum", mask, axis, keepdims=1), self.constant(np.array(1.0)))
        return self.unit(self.node("Div", self.node("ReduceSum", kept, axis, keepdims=0), count), 1e-12)

    def finish(self, probabilities: str, labels: int) -> bytes:
        """Return the whole graph, checked."""
        import onnx
        from onnx import TensorProto, helper

        self.nodes.append(helper.make_node("Identity", [probabilities], ["probabilities"]))
        inputs = [
            helper.make_tensor_value_info("states", TensorProto.FLOAT, ["texts", "tokens", "dimensions"]),
            helper.make_tensor_value_info("mask", TensorProto.INT64, ["texts", "tokens"]),
        ]
        output = helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["texts", labels])
        graph = helper.make_graph(self.nodes, "head", inputs, [output], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())
