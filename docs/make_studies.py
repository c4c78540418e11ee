"""Tells the stored studies anew and puts figures and findings into docs/STUDIES.md: ``python docs/make_studies.py``.

Everything comes from the stored rows: no model is loaded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).parent / "STUDIES.md"
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
STORED = BENCHMARKS / "results" / "studies"
_PLACE = re.compile(r"(<!-- (?P<name>[a-z-]+): begin -->\n).*?(<!-- (?P=name): end -->)", re.DOTALL)


def page(text: str) -> str:
    """The page with what every study found put in its place; the sentences around stay."""
    return _PLACE.sub(lambda place: place[1] + _found(place["name"]) + place[3], text)


def _found(name: str) -> str:
    path = STORED / name / "study.json"
    if not path.is_file():
        return "Not run yet.\n"
    told = json.loads(path.read_text(encoding="utf-8"))
    where = f"../benchmarks/results/studies/{name}"
    figures = [f"![{figure['title']}. {figure['alt']}]({where}/{figure['file']})\n" for figure in told["figures"]]
    findings = "".join(f"- {line}\n" for line in told["findings"])
    return "\n".join([f"**Found here**, with 95 % intervals:\n\n{findings}", *figures])


def tell_all() -> None:
    """Figures and findings of all studies that have rows."""
    from zicl.lab.study.run import summarize
    from zicl.lab.study.settings import NAMES, STUDIES, read_settings

    settings = read_settings(BENCHMARKS / "studies.toml", {})
    for name in NAMES:
        if (STORED / name).is_dir():
            summarize(STUDIES.get(name), settings.options(STUDIES.get(name)), STORED / name)


if __name__ == "__main__":
    tell_all()
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
