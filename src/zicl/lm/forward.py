"""Forward passes of a transformers model: packed trees, and the plain way they are checked against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from zicl.lm import attention
from zicl.lm.devices import entry
from zicl.lm.layer_cache import LowerLayerCache
from zicl.lm.packing import ROOT, PackedPrompts, chain
from zicl.prompt.builder import BranchScores, Prompt

# What a prefix leaves behind for what follows: the cache of keys and values, and the last hidden state.
Past = tuple[Any, torch.Tensor]
# Logits computed at once: 512 rows with a vocabulary of 49,152 tokens, 96 with one of 262,144.
_LOGITS = 25_165_824
# A product whose rows are a multiple of this is up to half as fast again on a CPU.
_ALIGNED = 16


class Forward:
    """Runs one transformers model. Hidden states first, vocabulary projection only where asked."""

    def __init__(self, model: Any) -> None:
        attention.use_tree_attention(model)
        self.model = model
        self.body = model.base_model
        self.head = model.get_output_embeddings()
        self.config = model.config.get_text_config()
        self.device = entry(model)
        self.dtype = next(model.parameters()).dtype
        self.below: LowerLayerCache | None = None

    @contextmanager
    def sharing(self, below: LowerLayerCache) -> Iterator[None]:
        """Within the block, layers of which ``below`` knows what they made of a batch are not run again."""
        self.below = below
        try:
            yield
        finally:
            self.below = None

    # -- prefix -----------------------------------------------------------------------------------

    def prefix(self, tokens: Sequence[int]) -> Past:
        """Run a prefix that is to be shared."""
        # Built from the configuration the cache would forget what lies beyond a sliding window.
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

    def packed(
        self,
        batch: Sequence[PackedPrompts],
        past: Past | None = None,
    ) -> list[list[BranchScores]]:
        """Score packed sequences, a row each, right-padded; with ``past``, one row behind a prefix."""
        width, offset = max(len(p) for p in batch), batch[0].offset
        hidden: torch.Tensor | None = None
        if width:
            hidden = self._hidden(batch, width, offset, past[0] if past else None)
        return [
            self._gather(p, None if hidden is None else hidden[row], None if past is None else past[1])
            for row, p in enumerate(batch)
        ]

    def _hidden(self, batch: Sequence[PackedPrompts], width: int, offset: int, cache: Any) -> torch.Tensor:
        """The last hidden states of packed sequences; the cache is left as it was, also by an error half-way."""
        # Behind a prefix the layers are needed for what they leave in its cache.
        once = nullcontext() if self.below is None or cache is not None else self.below.once(batch)
        try:
            with once, attention.tree_shape(batch[0] if len(batch) == 1 else None, self.device, self.dtype):
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
                _back_to(cache, offset)
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def _gather(
        self, packed: PackedPrompts, hidden: torch.Tensor | None, last: torch.Tensor | None
    ) -> list[BranchScores]:
        """Log-likelihoods at the places of one packed sequence; each distinct place is projected once."""
        wanted = sorted({place for rows in packed.places for row in rows for place in row})
        row_of = {place: row for row, place in enumerate(wanted)}
        parts = []
        if wanted and wanted[0] == ROOT and last is not None:
            parts.append(last[None])
        own = [place for place in wanted if place != ROOT]
        if own and hidden is not None:
            parts.append(hidden[torch.tensor(own, device=hidden.device)])
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
        """``log p(targets[i])`` predicted from ``states[rows[i]]``, in float32."""
        result = np.empty(len(rows), dtype=np.float32)
        # Pieces of like size: each reads all of the projection's weights, however few its rows.
        most = max(_ALIGNED, _LOGITS // self.config.vocab_size)
        size = -(-len(states) // -(-len(states) // most))
        for start in range(0, len(states), size):
            chosen = np.flatnonzero((rows >= start) & (rows < start + size))
            logits = self._logits(states[start : start + size]).float()
            index = torch.tensor(rows[chosen] - start, device=logits.device)
            # What log_softmax does, in place and for the targets alone. The largest logit goes first: a plain
            # logit minus logsumexp loses four digits in float32.
            logits -= logits.amax(dim=-1, keepdim=True)
            picked = logits[index, torch.tensor(targets[chosen], device=logits.device)]
            picked -= logits.exp_().sum(dim=-1).log_()[index]
            result[chosen] = picked.cpu().numpy()
        return result

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """The vocabulary projection with what some families do to it; checked against the model at load."""
        logits = self._projected(hidden)
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _projected(self, hidden: torch.Tensor) -> torch.Tensor:
        """The projection itself; on a CPU as weights times states, which is the quicker way round for few states."""
        # A head with a hook may have its weights elsewhere until it is called.
        if type(self.head) is not torch.nn.Linear or hasattr(self.head, "_hf_hook") or hidden.device.type != "cpu":
            projected: torch.Tensor = self.head(hidden)
            return projected
        rows = torch.nn.functional.pad(hidden, (0, 0, 0, -len(hidden) % _ALIGNED))
        logits = (self.head.weight @ rows.T).T[: len(hidden)]
        return logits if self.head.bias is None else logits + self.head.bias

    def _mask(
        self,
        visible: Sequence[NDArray[np.bool_]],
        queries: Sequence[NDArray[np.int64]],
        keys: Sequence[NDArray[np.int64]],
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """Additive float masks (GPT-J *adds* a boolean one), one per layer type where there are several."""
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

    # -- the plain way ----------------------------------------------------------------------------

    def plain(self, prompt: Prompt) -> BranchScores:
        """One full forward pass a label, every logit: slow, obvious, and what the trees must equal."""
        scores = []
        for index, branch in enumerate(prompt.branches):
            tokens = prompt.tokens(index)
            logits = self.model(input_ids=torch.tensor([tokens], device=self.device), use_cache=False).logits
            table = torch.log_softmax(logits[0].float(), dim=-1)
            first = len(tokens) - len(branch.scored)
            picked = [table[place - 1, tokens[place]] for place in range(first, len(tokens))]
            scores.append(torch.stack(picked).cpu().numpy().astype(np.float32))
        return tuple(scores)


def _back_to(cache: Any, length: int) -> None:
    """Take off what was added behind a prefix, layer by layer: after an error only some have it."""
    for layer in cache.layers:
        # Cropping is a view, building the cache anew would copy it.
        if (over := layer.get_seq_length() - length) > 0:
            layer.crop(-over)


def _padded(rows: Sequence[NDArray[np.int64]], width: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.stack([np.pad(row, (0, width - len(row))) for row in rows])).to(device)


def _square(visible: NDArray[np.bool_], width: int) -> NDArray[np.bool_]:
    """Pad a mask to ``width`` rows; a padding token sees itself, since a row that sees nothing is not a number."""
    count, missing = len(visible), width - len(visible)
    padded = np.pad(visible, ((0, missing), (0, missing)))
    index = np.arange(count, width)
    padded[index, padded.shape[1] - width + index] = True
    return padded
