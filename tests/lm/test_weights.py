"""Weights: none may be missing, and huge pages do not change them."""

import torch

from zicl.lm.weights import use_huge_pages


def test_weights_keep_their_values_ties_and_shapes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 5, bias=False))
    model[1].weight = torch.nn.Parameter(model[0].weight.detach().clone().T.contiguous())
    model.append(torch.nn.Linear(5, 7, bias=False))
    model[2].weight = model[0].weight
    text = torch.randn(3, 5)
    before = model(text)
    use_huge_pages(model)
    assert model[2].weight is model[0].weight
    assert torch.equal(model(text), before)


def test_nothing_to_move_is_nothing_done() -> None:
    assert not use_huge_pages(torch.nn.ReLU())
