"""Ruling the network out for a whole process."""

from __future__ import annotations

import os


def go_offline() -> None:
    """Rule the network out, here and in the libraries underneath, which read these when they are imported."""
    os.environ["ZICL_OFFLINE"] = "1"
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TRANSFORMERS_OFFLINE"] = "1"
