"""How a remote model is asked."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class RemoteSettings(BaseModel):
    """What may be sent, how fast, for how much; none of it changes a score.

    ``tokenizer`` names the one prompts are written with (a catalog name, ``hf:ID``, a folder or ``gguf:FILE``); without
    it the server's own is asked. Prices are for a million tokens, in any currency, as is ``max_cost``, for one run.
    Without ``recall`` answers of earlier runs are not used, and these are not kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Corpus sentences and texts may be sent to a server that is not on this machine.
    allow_text: bool = False
    tokenizer: str | None = None
    # Tokens of the longest prompt, for servers that do not tell.
    context: int | None = Field(None, ge=8)
    requests: int = Field(8, ge=1, le=512)
    timeout: float = Field(300.0, gt=0)
    attempts: int = Field(6, ge=1)
    price_in: float | None = Field(None, ge=0)
    price_out: float | None = Field(None, ge=0)
    max_cost: float | None = Field(None, gt=0)
    recall: bool = True

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max_cost is not None and self.price_in is None:
            raise ValueError("max_cost needs price_in, the price of a million tokens of prompt")
        return self
