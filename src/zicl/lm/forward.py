"""Forward passes of a transformers model: of packed trees, and plain ones that these are checked against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zicl.lm import attention
from zicl.lm.devices import input_device
from zicl.lm.layer_cache import LowerLayerCache
from zicl.lm.linear import multiply, supports_onednn
from zicl.lm.packing import ROOT, PackedPrompts, chain
from zicl.prompt.builder import BranchScores, Prompt

# A computed prefix: its cache of keys and values, and its last hidden state.
PrefixState = tuple[Any, torch.Tensor]
# Logits computed at once: 512 rows for a vocabulary of 49,152 tokens, 96 for one of 262,144.
_LOGITS = 25_165_824
# At the least so many rows at once, however large the vocabulary is.
_MIN_ROWS = 16


class Forward:
    """Run one transformers model: hidden states first, then the vocabulary projection at scored positions only."""

    def __init__(self, model: Any) -> None:
        attention.use_tree_attention(model)
        self.model = model
        self.body = model.base_model
        self.head = model.get_output_embeddings()
        self.config = model.config.get_text_config()
        self.device = input_device(model)
        self.dtype = next(model.parameters()).dtype
        self.layer_cache: LowerLayerCache | None = None

    @contextmanager
    def use_layer_cache(self, cache: LowerLayerCache) -> Iterator[None]:
        """Within the block, take the output of the lower layers from ``cache`` for batches that it knows."""
        self.layer_cache = cache
        try:
            yield
        finally:
            self.layer_cache = None

    # -- prefix -----------------------------------------------------------------------------------

    def prefix(self, tokens: Sequence[int]) -> PrefixState:
        """Compute a prefix that several prompts share."""
        # A cache built from the configuration would drop the tokens outside of a sliding window.
        from transformers import DynamicCache

        cache = DynamicCache()
        plain = chain(tokens)
        positions = plain.positions
        with attention.tree_shape(plain, self.device, self.dtype):
            output = self.body(
                input_ids=torch.tensor([list(tokens)], device=self.device),
                position_ids=torch.tensor(positions[None], device=self.device),
                attention_mask=self._mask([plain.visible()], [positions], [positions]),
                past_key_values=cache,
                use_cache=True,
            )
        return cache, output.last_hidden_state[0, -1]

    # -- packed trees -----------------------------------------------------------------------------

    def packed(self, batch: Sequence[PackedPrompts], prefix: PrefixState | None = None) -> list[list[BranchScores]]:
        """Score packed sequences, one per row, right-padded; after a computed ``prefix``, a single row."""
        width, offset = max(len(p) for p in batch), batch[0].offset
        cache, last = prefix or (None, None)
        hidden = self._hidden(batch, width, offset, cache) if width else None
        return [self._gather(p, None if hidden is None else hidden[row], last) for row, p in enumerate(batch)]

    def _hidden(self, batch: Sequence[PackedPrompts], width: int, offset: int, cache: Any) -> torch.Tensor:
        """Return the last hidden states of packed sequences; restore the cache, also after an error in some layer."""
        # After a prefix, the lower layers read and extend its cache, so that their output is not reused.
        reuse = nullcontext() if self.layer_cache is None or cache is not None else self.layer_cache.reuse(batch)
        try:
            with reuse, attention.tree_shape(batch[0] if len(batch) == 1 else None, self.device, self.dtype):
                output = self.body(
                    input_ids=_padded([p.tokens for p in batch], width, self.device),
                    position_ids=_padded([p.positions for p in batch], width, self.device),
                    attention_mask=self._mask(
                        [_square(p.visible(), width) for p in batch],
                        [np.pad(p.positions, (0, width - len(p))) for p in batch],
                        [np.pad(np.r_[np.arange(offset), p.positions], (0, width - len(p))) for p in batch],
                    ),
                    past_key_values=cache,
                    use_cache=cache is not None,
                )
        finally:
            if cache is not None:
                _truncate(cache, offset)
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def _gather(
        self, packed: PackedPrompts, hidden: torch.Tensor | None, last: torch.Tensor | None
    ) -> list[BranchScores]:
        """Return the log-likelihoods of one packed sequence; each distinct place is projected once."""
        places = sorted({place for rows in packed.places for row in rows for place in row})
        row_of = {place: row for row, place in enumerate(places)}
        parts = []
        if places and places[0] == ROOT and last is not None:
            parts.append(last[None])
        inside = [place for place in places if place != ROOT]
        if inside and hidden is not None:
            parts.append(hidden[torch.tensor(inside, device=hidden.device)])
        states = torch.cat(parts)

        rows, targets, shape = list[int](), list[int](), list[int]()
        for prompt_places, prompt_targets in zip(packed.places, packed.targets, strict=True):
            for place_row, target_row in zip(prompt_places, prompt_targets, strict=True):
                rows += [row_of[place] for place in place_row]
                targets += target_row
                shape.append(len(target_row))
        flat = self._log_likelihoods(states, np.asarray(rows), np.asarray(targets))
        pieces = iter(np.split(flat, np.cumsum(shape)[:-1]))
        return [tuple(next(pieces) for _ in prompt_places) for prompt_places in packed.places]

    def _log_likelihoods(
        self, states: torch.Tensor, rows: NDArray[np.int64], targets: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return ``log p(targets[i])`` as predicted from ``states[rows[i]]``, in float32."""
        result = np.empty(len(rows), dtype=np.float32)
        # Pieces of equal size: each reads all weights of the projection, however few its rows are.
        limit = max(_MIN_ROWS, _LOGITS // self.config.vocab_size)
        size = -(-len(states) // -(-len(states) // limit))
        for start in range(0, len(states), size):
            chosen = np.flatnonzero((rows >= start) & (rows < start + size))
            logits = self._logits(states[start : start + size]).float()
            index = torch.tensor(rows[chosen] - start, device=logits.device)
            # log_softmax in place, and for the targets alone. The largest logit is subtracted first: a plain logit
            # minus logsumexp loses four digits in float32.
            logits -= logits.amax(dim=-1, keepdim=True)
            picked = logits[index, torch.tensor(targets[chosen], device=logits.device)]
            picked -= logits.exp_().sum(dim=-1).log_()[index]
            result[chosen] = picked.cpu().numpy()
        return result

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits, scaled and capped as some architectures do it; checked against the model when it is loaded."""
        logits = self._project(hidden)
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _project(self, hidden: torch.Tensor) -> torch.Tensor:
        """Project onto the vocabulary."""
        head = self.head
        # The weights of a head with a hook may be on another device until it is called.
        if type(head) is torch.nn.Linear and not hasattr(head, "_hf_hook") and supports_onednn(head.weight):
            return multiply(hidden, head.weight, head.bias)
        projected: torch.Tensor = head(hidden)
        return projected

    def _mask(
        self,
        visible: Sequence[NDArray[np.bool_]],
        queries: Sequence[NDArray[np.int64]],
        keys: Sequence[NDArray[np.int64]],
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """Return additive float masks (GPT-J would *add* a boolean one), one per layer type if there are several."""
        full = self._additive(np.stack(visible))
        window = getattr(self.config, "sliding_window", None)
        types = set(getattr(self.config, "layer_types", None) or ())
        if window is None or types == {"full_attention"}:
            return full
        near = np.stack(queries)[:, :, None] - np.stack(keys)[:, None, :] < window
        sliding = self._additive(np.stack(visible) & near)
        if not types:
            return sliding
        return {kind: sliding if kind == "sliding_attention" else full for kind in types}

    def _additive(self, visible: NDArray[np.bool_]) -> torch.Tensor:
        allowed = torch.from_numpy(visible).to(self.device)
        zero = torch.zeros((), dtype=self.dtype, device=self.device)
        return torch.where(allowed, zero, torch.finfo(self.dtype).min)[:, None]

    # -- plain prompts ----------------------------------------------------------------------------

    def plain(self, prompt: Prompt) -> BranchScores:
        """Score with one full forward pass per label: slow and obvious; packed trees must give the same."""
        scores = []
        for index, branch in enumerate(prompt.branches):
            tokens = prompt.tokens(index)
            logits = self.model(input_ids=torch.tensor([tokens], device=self.device), use_cache=False).logits
            table = torch.log_softmax(logits[0].float(), dim=-1)
            first = len(tokens) - len(branch.scored)
            picked = [table[place - 1, tokens[place]] for place in range(first, len(tokens))]
            scores.append(torch.stack(picked).cpu().numpy().astype(np.float32))
        return tuple(scores)


def _truncate(cache: Any, length: int) -> None:
    """Remove the tokens after the prefix, layer by layer: after an error only some layers have them."""
    for layer in cache.layers:
        # Cropping makes a view; rebuilding the cache would copy it.
        if (excess := layer.get_seq_length() - length) > 0:
            layer.crop(-excess)


def _padded(rows: Sequence[NDArray[np.int64]], width: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.stack([np.pad(row, (0, width - len(row))) for row in rows])).to(device)


def _square(visible: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Pad a mask to ``width`` rows; padding tokens see themselves, because a softmax over nothing is not a number."""
    count, missing = len(visible), width - len(visible)
    padded = np.pad(visible, ((0, missing), (0, missing)))
    index = np.arange(count, width)
    padded[index, padded.shape[1] - width + index] = True
    return padded
