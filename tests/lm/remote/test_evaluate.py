"""An evaluation on a server: the rows of the local backend, also after it was stopped by the cost and resumed."""

import json

import pytest

from tests.lab.evaluate.conftest import make_experiment, write_task
from tests.lm.remote import server as fake
from zicl.exceptions import BudgetError, ConfigError
from zicl.lab.evaluate.context import ExperimentContext
from zicl.lab.evaluate.estimate import estimate
from zicl.lab.evaluate.manifest import manifest
from zicl.lab.evaluate.run import Runner, evaluate
from zicl.lab.evaluate.store import ResultsFolder
from zicl.lab.evaluate.verify import verify
from zicl.lm.hf import HFLanguageModel


def rows(folder):
    found = ResultsFolder.open(folder).table().to_pylist()
    return sorted(found, key=lambda row: (row["method"], row["inference"], str(row["seed"]), row["example"]))


def test_rows_are_those_of_the_local_backend_also_after_a_stop(running, opened, index, tmp_path, monkeypatch):
    monkeypatch.setenv("ZICL_API_KEY", "sk-secret")
    experiment = make_experiment(write_task(tmp_path, test=4), methods=["no-demos", "z-icl", "icl-gold"], seeds=[13])
    server = running(fake.VLLM, key="sk-secret")
    price = {"price_in": 1000.0}
    stopped = opened(server, max_cost=opened(server, **price).usage.cost + 10, **price)
    with pytest.raises(BudgetError):
        evaluate(ExperimentContext(experiment, lm=stopped, index=index), tmp_path / "remote")
    asked = opened(server, **price)
    assert evaluate(ExperimentContext(experiment, lm=asked, index=index), tmp_path / "remote").complete
    assert asked.usage.cached > 0

    local = HFLanguageModel(*fake.tiny(), name="tiny", identity="tiny")
    evaluate(ExperimentContext(experiment, lm=local, index=index), tmp_path / "local")
    for mine, theirs in zip(rows(tmp_path / "local"), rows(tmp_path / "remote"), strict=True):
        assert mine.pop("log_likelihoods") == pytest.approx(theirs.pop("log_likelihoods"), abs=1e-3)
        assert mine == theirs
    manifest = ResultsFolder.open(tmp_path / "remote").manifest
    assert manifest["fingerprint"]["lm"]["revision"] == "tiny by prompt_logprobs + logprob_token_ids"
    assert "sk-secret" not in json.dumps(manifest)
    assert str(tmp_path) not in json.dumps(manifest)


def test_a_server_that_moved_goes_on_with_the_same_folder(running, opened, index, tmp_path):
    experiment = make_experiment(write_task(tmp_path, test=4), methods=["no-demos", "z-icl"], seeds=[13])
    first, second = running(fake.VLLM), running(fake.VLLM)
    part = experiment.model_copy(update={"examples": 2})
    done = evaluate(ExperimentContext(part, lm=opened(first), index=index), tmp_path / "remote")
    first.close()
    moved = opened(second)
    assert moved.name != first.spec
    more = evaluate(ExperimentContext(experiment, lm=moved, index=index), tmp_path / "remote")
    assert more.complete
    assert (more.kept, more.computed) == (done.computed, done.computed)
    # Another way of asking may round otherwise: its rows are not mixed with these.
    other = opened(running(fake.SGLang))
    with pytest.raises(ConfigError, match="another configuration: lm identity"):
        evaluate(ExperimentContext(experiment, lm=other, index=index), tmp_path / "remote")


def test_a_dry_run_asks_nothing_and_counts_what_would_be_sent(running, opened, index, tmp_path):
    server = running(fake.VLLM)
    remote = opened(server)
    task = write_task(tmp_path, test=3)
    world = ExperimentContext(make_experiment(task, methods=["no-demos", "z-icl"], seeds=[13]), lm=remote, index=index)
    asked, before = len(server.asked), remote.usage.tokens_in
    found = estimate(Runner(world), set())
    assert len(server.asked) == asked
    assert found.tokens_per_second is None
    evaluate(world, tmp_path / "remote")
    assert sum(found.tokens.values()) == remote.usage.tokens_in - before


def test_rows_are_verified_by_asking_again(running, opened, index, tmp_path):
    experiment = make_experiment(write_task(tmp_path, test=3), methods=["no-demos"], seeds=[13])
    server = running(fake.VLLM)
    experiment = experiment.model_copy(update={"lm": server.spec})
    evaluate(ExperimentContext(experiment, lm=opened(server), index=index), tmp_path / "remote")
    again = opened(server, recall=False)
    before = again.usage.requests
    checked = verify(ExperimentContext(experiment, lm=again, index=index), ResultsFolder.open(tmp_path / "remote"))
    assert all(row.agrees for row in checked)
    # A server's numbers are not known to be float32.
    assert {row.allowed for row in checked} == {0.25}
    assert again.usage.cached == 0
    assert again.usage.requests > before


def test_a_path_on_the_servers_machine_is_in_no_manifest(running, opened, index, tmp_path):
    experiment = make_experiment(write_task(tmp_path, test=1), methods=["no-demos"], seeds=[13])
    server = running(fake.VLLM)
    named = experiment.model_copy(update={"lm": f"{server.spec.partition('#')[0]}#/home/ann/models/tiny"})
    assert "home" not in json.dumps(manifest(ExperimentContext(named, lm=opened(server), index=index)))
