"""Check what a command was given before anything slow is loaded: a mistake is said in the first second.

``CHECKS`` is the one table: a command hands ``preflight`` what it was given, by these names. To check something new,
write a function and one line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zicl._util.process import require_extra
from zicl.exceptions import IndexMissingError, ModelNotFoundError, UsageError


def _corpus(path: str | Path) -> None:
    """Check that a corpus is complete, can be read by this version, and has an index."""
    from zicl.corpus.manifest import read_manifest
    from zicl.retrieve.builder import FOLDER, MANIFEST

    read_manifest(Path(path))
    if not (Path(path) / FOLDER / MANIFEST).is_file():
        raise IndexMissingError(f"{path} has text but no index", hint=f"zicl index build {path}")


def _saved(path: Path) -> None:
    """Check that a saved classifier exists, in a format that this version reads."""
    from zicl.persistence import read_folder

    read_folder(path)


def _save(path: Path) -> None:
    """Check that nothing else has the name a classifier is saved under."""
    from zicl._util.files import check_replaceable
    from zicl.persistence import CLASSIFIER

    check_replaceable(path, CLASSIFIER, "a saved classifier")


def _output(path: Path) -> None:
    """Check that a file or a folder can be written there."""
    from zicl._util.files import check_place

    check_place(path)


def _new_folder(path: Path) -> None:
    """Check that a folder that --overwrite would replace does not exist yet."""
    from zicl._util.files import exists_error

    if path.exists():
        raise exists_error(path, overwrite=True)


def _file(path: str) -> None:
    """Check that a file of texts exists, in a format that can be read."""
    from zicl.inputs.files import check_readable

    if path != "-":
        check_readable(path)


def _lm(spec: str) -> None:
    """Check that a model is in the catalog, a hub id, an address, or an existing folder or file."""
    from zicl._util.hub import check_model_name
    from zicl.lm.remote.settings import is_remote

    if is_remote(spec):
        require_extra("remote", "a model behind a server", "httpx", "tenacity")
    elif spec.startswith("gguf:") or spec.endswith(".gguf"):
        path = Path(spec.removeprefix("gguf:")).expanduser()
        if not path.is_file():
            raise ModelNotFoundError(f"there is no file {path}", hint="give the path of a .gguf file")
    elif not spec.startswith("hf:"):
        check_model_name(spec, "lm")


def _encoder(name: str) -> None:
    """Check that an encoder is in the catalog, a hub id, or an existing folder."""
    from zicl._util.hub import check_model_name

    check_model_name(name, "encoder")


def _pages(_: Any) -> None:
    """Check that the packages of the server are installed."""
    require_extra("serve", "zicl serve", "fastapi", "prometheus_client", "starlette", "uvicorn")


def _page(path: Path) -> None:
    """Check that a page can be written there."""
    _output(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"-o {path}: the page is an HTML file", hint=f"-o {path.with_suffix('.html')}")
    if path.is_dir():
        raise UsageError(f"-o {path} is a folder, and a file was expected", hint=f"-o {path / 'map.html'}")


def _maps(_: Any) -> None:
    """Check that the package that draws maps is installed."""
    require_extra("map", "zicl map", "plotly")


def _figures(_: Any) -> None:
    """Check that the package that draws figures is installed."""
    from zicl.lab.report.plotting import check_plotting

    check_plotting()


CHECKS: Mapping[str, Callable[[Any], None]] = {
    "serving": _pages,
    "figures": _figures,
    "maps": _maps,
    "page": _page,
    "output": _output,
    "save": _save,
    "new_folder": _new_folder,
    "saved": _saved,
    "file": _file,
    "fit": _file,
    "lm": _lm,
    "encoder": _encoder,
    "corpus": _corpus,
}


def preflight(**given: Any) -> None:
    """Run the checks for what was given; None was not given."""
    for name, check in CHECKS.items():
        if given.get(name) is not None:
            check(given[name])
