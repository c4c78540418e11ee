"""Names of models: of the catalog, of folders, and of the model hub, which is asked once whether it can be reached."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from zicl._util.catalog import catalog
from zicl._util.registry import did_you_mean
from zicl.exceptions import ModelError, OfflineError, UnknownNameError, first_line

ModelKind = Literal["lm", "encoder"]
# What a kind is called, and what else names one.
_KINDS: dict[ModelKind, tuple[str, str]] = {
    "lm": ("language model", "a folder, OWNER/NAME of the model hub, gguf:FILE, http://HOST:PORT/v1#NAME"),
    "encoder": ("encoder", "a folder, OWNER/NAME of the model hub"),
}
_HUB_ID = re.compile(r"\w[\w.-]*/[\w.-]+(@.+)?")


def check_model_name(name: str, kind: ModelKind) -> None:
    """Check that a name is in the catalog, a folder, or has the form of an id, which only the hub can know."""
    entries, (called, others) = catalog(), _KINDS[kind]
    if name in entries and entries[name].kind != kind:
        raise ModelError(f"{name} is no {called}", hint="see zicl models list")
    if name in entries or Path(name).expanduser().is_dir() or _HUB_ID.fullmatch(name):
        return
    error = did_you_mean(called, name, (each for each, asset in entries.items() if asset.kind == kind))
    raise UnknownNameError(error.message, hint=f"{error.hint}; or {others}")


def can_reach_hub(name: str, revision: str = "") -> bool:
    """Ask the hub for a model once. Where there is no network, its libraries would try for two minutes."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        get_hf_file_metadata(hf_hub_url(name, "config.json", revision=revision or None))
    except (HfHubHTTPError, HFValidationError):
        # It answers, or has no such names: what is wrong with the model is said where it is loaded.
        return True
    except Exception:
        # Which errors a connection has depends on the version of its HTTP library.
        return False
    return True


def not_fetched(name: str, error: Exception) -> OfflineError:
    """Return the error for a model of the hub that is not on this machine, where the hub is not asked."""
    return OfflineError(
        f"{name} is not on this machine: {first_line(error)}",
        hint="run once without --offline where the model hub can be reached, or see zicl models list: those need none",
    )
