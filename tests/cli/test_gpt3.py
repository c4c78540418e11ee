"""The experiment of the paper's second table: planned in full, and counted against a server that speaks as vLLM."""

import json
from pathlib import Path

import pytest

from tests.conftest import DOCUMENTS
from tests.lm.remote import server as fake
from zicl.lab.evaluate.experiment import read_experiment
from zicl.lab.evaluate.plan import cells
from zicl.lab.evaluate.tasks import read_tasks
from zicl.lm.remote.settings import is_remote

EXPERIMENT = Path(__file__).parents[2] / "benchmarks" / "gpt3.toml"


def test_it_is_the_second_table():
    experiment = read_experiment(EXPERIMENT, {})
    assert is_remote(experiment.lm)
    assert experiment.tasks == ("CR", "Amz", "Yelp", "Tweet", "SST2")
    assert experiment.examples == 500
    assert len(experiment.seeds) == 2
    # The majority once; no-demos once an inference; three methods with two seeds and two inferences.
    assert len(list(cells(experiment))) == 5 * (1 + 2 + 3 * 2 * 2)


@pytest.fixture
def server(monkeypatch, tmp_path):
    monkeypatch.setenv("ZICL_HOME", str(tmp_path / "home"))
    running = fake.VLLM()
    yield running
    running.close()


def test_it_is_planned_against_a_server(run, server, corpus, tmp_path):
    for task in ("CR", "Amz", "Yelp", "Tweet", "SST2"):
        names = read_tasks()[task].labels.names
        rows = [
            {"id": f"{n}", "text": f"{DOCUMENTS[n % 10]} Take {n}.", "label": names[n % len(names)]} for n in range(24)
        ]
        for part, chosen in (("test", rows[:6]), ("train", rows[6:])):
            path = tmp_path / "data" / "eval" / task / f"{part}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    given = ["--data-dir", tmp_path / "data", "--corpus", corpus, "--lm", server.spec, "--k", 2, "--offline"]
    bought = ["--server", "price_in=2,price_out=2,max_cost=150", "--server", "requests=16"]
    code, out, err = run("evaluate", EXPERIMENT, *given, *bought, "--dry-run", "--json", "-o", tmp_path / "out")
    assert code == 0, err
    plan = json.loads(out)
    assert plan["examples"] == 5 * 15 * 6
    assert all(cell["tokens"] for key, cell in plan["cells"].items() if "majority" not in key)
    assert not (tmp_path / "out").exists()
