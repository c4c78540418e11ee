"""The routes in this process, on the tiny models."""

import json

import pytest

from tests.apps.serve.conftest import PAGE, TEXTS, asked, same
from zicl import PromptSettings, Retrieval, Scoring, ZICLClassifier
from zicl.apps.serve import engine, schema
from zicl.apps.serve.engine import Engine
from zicl.apps.serve.limits import RequestLimits
from zicl.corpus.subset import CorpusSubset
from zicl.exceptions import UsageError

LABELS = [{"name": "dull", "synonyms": ["boring"]}, {"name": "lively", "words": "full of life", "synonyms": ["vivid"]}]
CHANGES = [
    {},
    {"method": "naive"},
    {"method": "no-demos"},
    {"method": "random-inputs", "k": 2, "seed": 5},
    {"inference": "direct"},
    {"inference": "both", "k": 2},
    {"template": "text", "seed": 3},
    {"template": ["Note: {input}", "Kind: {label}"], "k": 0},
    {"labels": LABELS},
]


def twin(classifier, change):
    """The library's own classifier for a request's settings."""
    labels = classifier.labels_
    if "labels" in change:
        labels = (
            Engine(classifier, RequestLimits())
            .configurations.read(schema.ClassifierChoice(labels=change["labels"]))
            .labels
        )
    template = change.get("template", "auto")
    method = change.get("method", "z-icl")
    return ZICLClassifier(
        classifier.index,
        labels,
        classifier.lm,
        method=method,
        retrieval=Retrieval(k=0 if method == "no-demos" else change.get("k", 3)),
        prompt=PromptSettings(template=tuple(template) if isinstance(template, list) else template),
        scoring=Scoring(inference=change.get("inference", "channel")),
        seed=change.get("seed", 0),
        offline=True,
    ).fit()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: "-".join(map(str, change)) or "own")
def test_the_numbers_are_the_librarys(client, classifier, change):
    answer = client.post("/v1/classify", json={"texts": TEXTS[:4], **change}).json()
    assert [each["index"] for each in answer["results"]] == [0, 1, 2, 3]
    library = twin(classifier, change)
    for told, text in zip(answer["results"], TEXTS, strict=False):
        # One by one: a batch must not show in an answer.
        same(told, library.classify([text])[0])
    settings = answer["settings"]
    assert settings["method"] == change.get("method", "z-icl")
    assert settings["k"] == library.settings_.retrieval.k
    assert settings["template"] == list(library.settings_.prompt.template)
    assert [x["name"] for x in settings["labels"]] == list(library.labels_.names)


def test_requests_of_all_kinds_in_one_group_do_not_disturb_each_other(classifier):
    engine = Engine(classifier, RequestLimits())
    works = [
        (text, change, work)
        for text in TEXTS[:3]
        for change in CHANGES
        for work in engine.classify(schema.ClassifyRequest(text=text, **change))
    ]
    outcomes = engine.compute([work for _, _, work in works])
    for (text, change, _), outcome in zip(works, outcomes, strict=True):
        same(outcome.result.model_dump(), twin(classifier, change).classify([text])[0])


def test_an_explanation_tells_all_but_where_files_are(client, classifier):
    answer = client.post("/v1/classify", json={"text": TEXTS[0], "explain": True}).json()["results"][0]["explanation"]
    library = classifier.explain(TEXTS[0]).to_dict()
    assert [demo["row"] for demo in answer["demonstrations"]] == [demo["row"] for demo in library["demonstrations"]]
    for told, own in zip(answer["demonstrations"], library["demonstrations"], strict=True):
        assert {name: told[name] for name in ("text", "label", "words", "nearest", "kept", "domain")} == {
            name: own[name] for name in ("text", "label", "words", "nearest", "kept", "domain")
        }
        assert told["relation"] == "neighbour"
        assert "source" not in told
    assert answer["prompt"]["prefix"] == library["prompt"]["prefix"]
    assert [branch["label"] for branch in answer["prompt"]["branches"]] == ["terrible", "great"]
    assert "explanation" not in client.post("/v1/classify", json={"text": TEXTS[0]}).json()["results"][0]


def test_a_stream_gives_every_result_on_a_line(client, classifier):
    by_header = {"json": {"texts": TEXTS}, "headers": {"Accept": "application/x-ndjson"}}
    for ask in ({"json": {"texts": TEXTS, "stream": True}}, by_header):
        answer = client.post("/v1/classify", **ask)
        assert answer.headers["Content-Type"].startswith("application/x-ndjson")
        lines = [json.loads(line) for line in answer.text.splitlines()]
        assert sorted(line["index"] for line in lines) == list(range(len(TEXTS)))
        for line in lines:
            same(line, classifier.classify([TEXTS[line["index"]]])[0])


def test_a_stream_that_fails_ends_in_a_problem(client):
    ask = {"texts": TEXTS, "k": 60, "method": "naive", "stream": True}
    lines = [json.loads(line) for line in client.post("/v1/classify", json=ask).text.splitlines()]
    assert lines[-1]["type"] == "urn:zicl:problem:invalid"
    assert lines[-1]["status"] == 422
    assert lines[-1]["field"] == "k"
    assert "k = 60" in lines[-1]["detail"]


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        ({"text": "x", "method": "naiv"}, "method", "unknown method"),
        ({"text": "x", "template": "revew"}, "template", "unknown template"),
        ({"text": "x", "template": ["no field", "{label}"]}, "template", "must contain {input}"),
        ({"text": "x", "template": "pair"}, "template", "for pairs of texts"),
        ({"text": "x", "template": ["{first} {second}", "{label}"]}, "template", "for pairs of texts"),
        ({"text": "x", "labels": ["a", "A"]}, "labels", "the same words"),
        ({"text": "x", "labels": ["terrible", "great", "qzxv"]}, "labels", "no synonym good enough"),
        ({"text": "x", "labels": ["a\0b", "c"]}, "labels", "NUL"),
        ({"text": " "}, "text", "is empty"),
        ({"texts": ["fine", "a\x1eb"]}, "texts.1", "U+001E"),
        ({"text": "x", "k": 60}, "k", "of k = 60"),
        ({}, None, "neither text nor texts"),
        ({"text": "x", "texts": ["y"]}, None, "text and texts were both given"),
        ({"text": "x", "labels": ["a", 5]}, "labels.1", "not a string or an object"),
        ({"text": "x", "colour": "red"}, "colour", "no such key"),
    ],
)
def test_problems_say_what_and_where(client, body, field, says):
    answer = client.post("/v1/classify", json=body)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert says in problem["detail"]
    assert problem.get("field") == field
    assert problem["status"] == 422
    assert problem["expected"]
    assert problem["hint"]
    assert "--" not in problem["hint"] or field == "text"


@pytest.mark.parametrize(
    "body", [b"{", b"", b"\xff\xfe", b"[" * 200_000, b"1" * 10_000, b'{"text": "\\ud800"}', b"NaN"]
)
def test_a_malformed_body_is_a_4xx_with_a_reason(client, body):
    answer = client.post("/v1/classify", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]
    assert answer.json()["hint"]


def test_a_body_that_is_not_json_says_where(client):
    body = b'{\n  "text": "x",\n  "k": 3,,\n}'
    problem = client.post("/v1/classify", content=body, headers={"Content-Type": "application/json"}).json()
    assert problem["type"] == "urn:zicl:problem:malformed"
    assert "line 3, column 10" in problem["detail"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{\n "text": "\xff"}', "line 2, column 11: a byte that is not UTF-8"),
        (b"[" * 5000, "line 1, column 101: lists and objects are nested too deeply"),
        (b'{"k":\n' + b"1" * 5000 + b"}", "line 2, column 1: a number with too many digits"),
    ],
)
def test_what_the_parser_gives_up_at_has_a_place_too(client, body, says):
    answer = client.post("/v1/classify", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert says in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (rb'{"\ud800": 1, "text": "a"}', None, r'the key "\ud800" holds a broken character'),
        (
            rb'{"text": "a", "labels": ["a", {"name": "b", "\udfff": 1}]}',
            "labels.1",
            r'the key "\udfff" of labels.1 holds',
        ),
        (rb'{"text": "a", "labels": ["a\ud800", "b"]}', "labels.0", "labels.0 holds a broken character"),
        (rb'{"text": "a", "method": "\ud800"}', "method", "method holds a broken character"),
    ],
)
def test_half_a_character_is_named_where_it_is(client, body, field, says):
    answer = client.post("/v1/classify", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert answer.json().get("field") == field


def test_a_key_that_occurs_twice_is_named(client):
    headers = {"Content-Type": "application/json"}
    for body in (b'{"text": "a", "text": "b"}', b'{"labels": [{"text": "a", "text": "b"}, "c"], "text": "x"}'):
        answer = client.post("/v1/classify", content=body, headers=headers)
        assert answer.status_code == 422
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"] == "the key 'text' occurs twice"
        assert answer.json()["expected"] == "each key once"


def test_null_is_no_object(client):
    answer = client.post("/v1/classify", content=b"null", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the body is null, and no JSON object")


@pytest.mark.parametrize(("coding", "status"), [("gzip", 415), ("Br", 415), ("identity", 200)])
def test_a_compressed_body_is_refused_also_where_it_only_says_so(client, coding, status):
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    answer = client.post("/v1/classify", content=b'{"text": "A fine film."}', headers=headers)
    assert answer.status_code == status
    if status == 415:
        assert answer.json()["type"] == "urn:zicl:problem:compressed"
        assert answer.headers["Accept-Encoding"] == "identity"


def test_head_is_get_without_a_body(client):
    for path in ("/", "/healthz", "/readyz", "/metrics", "/v1/info", "/v1/paragraph/0", "/openapi.json"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert client.head("/v1/classify").status_code == 405
    assert client.head("/v1/nothing").status_code == 404


def test_a_text_that_was_cut_is_marked(client):
    short, long = client.post("/v1/classify", json={"texts": ["A film.", "A film. " * 200]}).json()["results"]
    assert (short["truncated"], long["truncated"]) == (False, True)


def test_wrong_names_come_with_those_that_info_lists(client):
    info = client.get("/v1/info").json()

    def hint(path, **changes):
        problem = client.post(f"/v1/{path}", json={"text": "x", **changes}).json()
        assert problem["status"] == 422
        return problem["field"], problem["hint"]

    for changes in {"template": "revew"}, {"template": "pair"}:
        field, said = hint("classify", **changes)
        listed = said.partition("nown: ")[2].partition(";")[0]
        assert (field, sorted(listed.split(", "))) == ("template", sorted(info["templates"]))
    assert hint("classify", method="naiv")[1].endswith(", ".join(sorted(info["methods"])))
    field, said = hint("retrieve", method="naive")
    assert (field, said) == ("method", f"'naive' retrieves as 'nearest' does. Known: {', '.join(info['retrievals'])}")
    assert "retrieves nothing" in hint("retrieve", method="no-demos")[1]
    assert "did you mean 'nearest'" in hint("retrieve", method="nearst")[1]
    assert client.post("/v1/classify", json={"text": "x", "template": "auto"}).status_code == 200


def test_addresses_that_are_not_there(client):
    assert client.get("/v1/nothing").json()["type"] == "urn:zicl:problem:not-found"
    wrong = client.get("/v1/classify")
    assert wrong.status_code == 405
    assert wrong.json()["expected"] == wrong.headers["Allow"] == "POST"
    assert client.get("/docs").status_code == 404
    # Whatever is sent along: the address or the method is what is wrong.
    assert client.post("/v1/nothing", content=b"x").status_code == 404
    assert client.post("/readyz").status_code == 405
    assert client.delete("/v1/info").status_code == 405


def test_retrieval_has_the_servers_own_settings_and_is_forgotten_again(served_index, lm):
    own = Retrieval(k=3, exclude_self=False)
    made = ZICLClassifier(served_index, ["terrible", "great"], lm, retrieval=own, offline=True, method="z-icl").fit()
    text = served_index.sentence(0).text
    with asked(made) as client:
        asks = {"text": text, "k": 1, "method": "nearest"}
        assert client.post("/v1/retrieve", json=asks).json()["sentences"][0]["text"] == text
        for number in range(300):
            client.post("/v1/retrieve", json={"text": f"lamp {number}", "k": 1})
    assert served_index.cached_texts <= 257


def test_retrieved_sentences_and_their_paragraphs(client, served_index):
    answer = client.post("/v1/retrieve", json={"text": "The soup was warm.", "k": 2}).json()
    assert answer["method"] == "physical"
    assert [each["relation"] for each in answer["sentences"]] == ["neighbour", "neighbour"]
    first = answer["sentences"][0]
    around = client.get(f"/v1/paragraph/{first['row']}").json()
    assert {"row": first["row"], "text": first["text"]} in around["sentences"]
    assert first["nearest"] in around["sentences"]
    assert len(around["sentences"]) == 3
    nearest = client.post("/v1/retrieve", json={"text": "soup", "k": 1, "method": "nearest"}).json()["sentences"]
    assert nearest[0]["relation"] == "nearest"
    drawn = client.post("/v1/retrieve", json={"text": "soup", "k": 1, "method": "random"}).json()["sentences"]
    assert (drawn[0]["relation"], drawn[0]["nearest"]) == ("random", None)
    for row in (len(served_index.corpus), -1, 10**30):
        assert client.get(f"/v1/paragraph/{row}").status_code == 404
        assert "/v1/retrieve" in client.get(f"/v1/paragraph/{row}").json()["hint"]
    wrong = client.get("/v1/paragraph/x")
    assert wrong.status_code == 422
    assert wrong.json()["detail"] == "row: it is not a whole number"


def test_synonyms_of_the_paper_and_given_ones(client):
    found = client.post("/v1/synonyms", json={"labels": ["terrible", {"name": "great", "synonyms": ["fine"]}]}).json()
    assert found == {
        "synonyms": {"terrible": [{"word": "bad", "score": None}], "great": [{"word": "fine", "score": None}]}
    }


def test_info_names_no_path(client, served_index):
    info = client.get("/v1/info").json()
    assert info["corpus"]["sentences"] == 30
    assert info["settings"]["k"] == 3
    assert info["limits"]["texts"] == 256
    assert "z-icl" in info["methods"]
    assert str(served_index.corpus.path.parent) not in json.dumps(info)
    assert served_index.corpus.path.name not in json.dumps(info)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("smollm2-135m", "smollm2-135m"),
        ("hf:org/model", "hf:org/model"),
        ("http://10.0.0.3:8000/v1#llama", "llama"),
        ("https://inner.example/v1", "remote"),
        ("gguf:weights/model.gguf", "local"),
        ("/models/secret", "local"),
    ],
)
def test_where_a_model_lies_is_not_told(name, told):
    assert engine._model_info(name, "hash").name == told


def test_a_sentence_that_was_removed_is_not_there(served_index, lm):
    part = served_index.only(CorpusSubset(share=0.5, seed=1))
    gone = next(row for row in range(len(part.corpus)) if not part.corpus.used[row])
    with asked(
        ZICLClassifier(part, ["terrible", "great"], lm, retrieval=Retrieval(k=1), offline=True, method="z-icl").fit()
    ) as client:
        assert client.get(f"/v1/paragraph/{gone}").status_code == 404
        assert client.get("/v1/info").json()["corpus"]["sentences"] == int(part.corpus.used.sum())


def test_a_server_without_a_corpus_says_so(lm):
    bare = ZICLClassifier(None, ["terrible", "great"], lm, method="no-demos").fit()
    with asked(bare) as client:
        assert client.post("/v1/classify", json={"text": "x", "k": 5}).json()["settings"]["k"] == 0
        assert client.post("/v1/classify", json={"text": "x", "method": "z-icl"}).status_code == 422
        assert client.post("/v1/retrieve", json={"text": "x"}).status_code == 404
        assert client.get("/v1/paragraph/0").status_code == 404
        assert client.get("/v1/info").json()["corpus"] is None


def test_classifiers_that_do_not_fit_a_server(served_index, lm):
    counted = ZICLClassifier(served_index, 3, lm, retrieval=Retrieval(k=2), method="z-icl").fit()
    with pytest.raises(UsageError, match="options"):
        Engine(counted, RequestLimits())
    pairs = ZICLClassifier(
        served_index,
        ["terrible", "great"],
        lm,
        prompt=PromptSettings(template="pair"),
        retrieval=Retrieval(k=2),
        method="z-icl",
    ).fit()
    with pytest.raises(UsageError, match="pairs"):
        Engine(pairs, RequestLimits())


def test_counters_and_the_page(client):
    client.post("/v1/classify", json={"text": "counted once"})
    client.post("/v1/classify", json={"text": "counted once"})
    text = client.get("/metrics").text
    assert 'zicl_requests_total{route="/v1/classify",status="200"}' in text
    assert "zicl_ready 1.0" in text
    assert "zicl_cached_total" in text
    assert "counted once" not in text
    page = client.get("/")
    assert page.content == PAGE.html
    assert page.headers["Content-Security-Policy"] == PAGE.policy
