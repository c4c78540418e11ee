"""From a request's settings to what runs, on the tiny models."""

import pytest

from tests.apps.serve.conftest import TEXTS, asked, same
from zicl import Calibration, Retrieval, Scoring, ZICLClassifier
from zicl.apps.serve import schema
from zicl.apps.serve.configurations import ClassifierCache, RequestedSettings
from zicl.apps.serve.engine import Engine
from zicl.apps.serve.limits import RequestLimits
from zicl.apps.serve.problems import RefusedError, refusal
from zicl.exceptions import LabelError, PromptError, ServerError, TokenizationError
from zicl.prompt.labels import Label, Labels

PAPER = {"terrible": ("bad",), "great": ("good",)}


@pytest.mark.parametrize("named", [True, False])
def test_the_servers_own_settings_sent_along_are_the_servers_own(classifier, named):
    engine = Engine(classifier, RequestLimits())
    own = engine.info.settings
    # The page knows the template's name, other clients its lines.
    [name] = [name for name, lines in engine.info.templates.items() if lines == own.template]
    asked = schema.ClassifyRequest(
        text="x",
        labels=[schema.LabelSpec(**label.model_dump()) for label in own.labels],
        template=name if named else own.template,
        method=own.method,
        inference=own.inference,
        k=own.k,
        seed=own.seed,
    )
    (work,) = engine.classify(asked)
    assert engine.configurations.get(work.settings) is engine.configurations.default
    # With other labels the template that was sent counts: the server's own was picked for its own labels.
    other = engine.configurations.read(schema.ClassifierChoice(labels=["dull", "lively"], template=own.template))
    assert other.template == tuple(own.template)


def test_the_number_of_demonstrations_that_is_sent_counts(classifier, served_index, lm):
    # The server's own may be above what others may ask for.
    (work,) = Engine(classifier, RequestLimits(k=2)).classify(schema.ClassifyRequest(text="x", k=3))
    assert work.settings == RequestedSettings()
    with pytest.raises(RefusedError):
        Engine(classifier, RequestLimits(k=2)).classify(schema.ClassifyRequest(text="x", k=4))
    alone = ZICLClassifier(served_index, ["terrible", "great"], lm, method="no-demos").fit()
    found = ClassifierCache(alone, served_index)
    assert found.get(found.read(schema.ClassifierChoice(method="z-icl", k=2))).settings.k == 2
    assert found.get(found.read(schema.ClassifierChoice(method="z-icl"))).settings.k == 16


def test_what_was_learned_from_texts_holds_for_the_servers_own_settings_alone(served_index, lm):
    fitted = ZICLClassifier(
        served_index,
        ["terrible", "great"],
        lm,
        retrieval=Retrieval(k=2),
        calibrate=Calibration(method="batch"),
        method="z-icl",
    ).fit(TEXTS)
    with asked(fitted) as client:
        own = client.post("/v1/classify", json={"text": TEXTS[0]}).json()
        assert own["settings"]["calibration"] == "batch"
        same(own["results"][0], fitted.classify([TEXTS[0]])[0])
        changed = client.post("/v1/classify", json={"text": TEXTS[0], "seed": 1}).json()
        assert changed["settings"]["calibration"] == "none"


def test_a_method_brings_the_encoder_expert_and_removes_it(client, classifier, served_index, lm):
    three, ask = Retrieval(k=3), {"text": TEXTS[0]}
    plus = ZICLClassifier(served_index, ["terrible", "great"], lm, method="z-icl+", retrieval=three).fit()
    asked_for = client.post("/v1/classify", json={**ask, "method": "z-icl+"}).json()["results"][0]
    same(asked_for, plus.classify([TEXTS[0]])[0])
    with asked(plus) as client:
        same(client.post("/v1/classify", json=ask).json()["results"][0], plus.classify([TEXTS[0]])[0])
        paper = client.post("/v1/classify", json={**ask, "method": "z-icl"}).json()["results"][0]
        same(paper, classifier.classify([TEXTS[0]])[0])
    # Who starts a server with it has it with every method.
    both = ZICLClassifier(
        served_index,
        ["terrible", "great"],
        lm,
        retrieval=three,
        scoring=Scoring(experts=("prompt", "cosine")),
        method="z-icl",
    ).fit()
    with asked(both) as client:
        naive = client.post("/v1/classify", json={**ask, "method": "naive"}).json()["results"][0]
        own = both.set_params(method="naive").fit().classify([TEXTS[0]])[0]
        same(naive, own)


def test_what_the_encoder_compares_with_can_be_sent(client, served_index, lm):
    described = [("terrible", "Nobody should go there."), ("great", "Everybody should go there.")]
    words = [{"name": name, "description": said} for name, said in described]
    answer = client.post("/v1/classify", json={"text": TEXTS[0], "method": "z-icl+", "labels": words}).json()
    assert answer["settings"]["experts"] == ["encoder"]
    assert [(each["name"], each["description"]) for each in answer["settings"]["labels"]] == described
    labels = Labels(tuple(Label(name, synonyms=PAPER[name], description=said) for name, said in described))
    own = ZICLClassifier(served_index, labels, lm, method="z-icl+", retrieval=Retrieval(k=3)).fit()
    same(answer["results"][0], own.classify([TEXTS[0]])[0])
    # Other synonyms do not take the server's description away.
    with asked(own) as client:
        words = [{"name": "terrible", "synonyms": ["awful"]}, {"name": "great"}]
        changed = client.post("/v1/classify", json={"text": TEXTS[0], "labels": words}).json()["settings"]["labels"]
        assert [(each["name"], each["description"]) for each in changed] == described


def test_only_what_is_wrong_with_a_configuration_itself_is_remembered(classifier, monkeypatch):
    found, fails = ClassifierCache(classifier, classifier.index), []
    fit = ZICLClassifier.fit
    monkeypatch.setattr(ZICLClassifier, "fit", lambda self: fit(self) if not fails else _raise(fails.pop()))
    for failure in (ServerError("it does not answer"), LabelError("no such labels")):
        fails[:] = [failure]
        wanted = RequestedSettings(method="naive", seed=len(str(failure)))
        with pytest.raises(type(failure)):
            found.get(wanted)
        if isinstance(failure, LabelError):
            with pytest.raises(LabelError):
                found.get(wanted)
        else:
            assert found.get(wanted).settings.method == "naive"


def _raise(error):
    raise error


def test_labels_that_tokens_cannot_spell_are_no_fault_of_a_text(classifier, monkeypatch):
    found = ClassifierCache(classifier, classifier.index)
    monkeypatch.setattr(ZICLClassifier, "fit", lambda _: _raise(TokenizationError("the tokenizer of /home/x …")))
    with pytest.raises(PromptError, match="cannot spell these labels") as caught:
        found.get(RequestedSettings(seed=5))
    problem = refusal(caught.value).problem
    assert problem.field is None
    assert "/home" not in problem.model_dump_json()
