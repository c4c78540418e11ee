"""The built package, checked and run where the repository is not: ``make test-wheel`` builds and installs it."""

from __future__ import annotations

import os
import tarfile
import zipfile

import pytest

from tests.readme import ROOT, blocks, make_place, run_in
from zicl import __version__

pytestmark = pytest.mark.wheel
PYTHON = os.path.abspath(os.environ.get("ZICL_WHEEL_PYTHON", ".venv-wheel/bin/python"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_place(tmp_path_factory.mktemp("wheel"))


def section(title, language):
    """The code of one section of the README."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    return blocks(language, page.split(f"\n## {title}\n")[1].split("\n## ")[0])


def test_what_is_installed_is_the_wheel(place):
    said = run_in(place, [PYTHON, "-c", "import zicl; print(zicl.__file__, zicl.__version__)"], PYTHON)
    assert "site-packages" in said
    assert str(ROOT / "src") not in said
    assert said.split()[-1] == __version__
    assert run_in(place, ["zicl", "--version"], PYTHON).strip() == f"zicl {__version__}"


def test_the_archives_have_what_they_need_and_nothing_else():
    (wheel,), (sdist,) = ROOT.glob("dist/*.whl"), ROOT.glob("dist/*.tar.gz")
    assert wheel.name == f"zicl-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names} == {"zicl", f"zicl-{__version__}.dist-info"}
    # What is not code is easily left out.
    sources = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {path.relative_to(ROOT / "src").as_posix() for path in sources} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        members = [member.name.split("/", 1)[1] for member in archive if member.isfile()]
    assert {"pyproject.toml", "README.md", "LICENSE", "src/zicl/__init__.py"} <= set(members)
    # Stored rows and pictures are megabytes that nobody installs.
    assert sdist.stat().st_size < 2_000_000


def test_the_five_lines_of_python(place):
    (lines,) = section("Five lines of Python", "python")
    assert "encoder" in run_in(place, [PYTHON, "-c", lines], PYTHON)


def test_the_five_lines_of_shell(place):
    (lines,) = section("Five lines of shell", "sh")
    assert '"predicted": "complaint"' in run_in(place, ["bash", "-euc", lines], PYTHON)


def test_the_demo(place):
    said = run_in(place, ["zicl", "demo", "--offline"], PYTHON)
    assert "of 100" in said
