import pytest

from tests.apps.serve.conftest import PAGE, asked
from zicl.apps.serve.security import Access
from zicl.exceptions import UsageError

TOKEN = "not-a-secret-of-anyone"
ROUTES = [
    ("GET", "/"), ("GET", "/v1/info"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/v1/paragraph/0"),
    ("POST", "/v1/classify"), ("POST", "/v1/retrieve"), ("POST", "/v1/synonyms"), ("GET", "/nothing"),
]  # fmt: skip
FOREIGN_HOSTS = [
    "evil.example",
    "evil.example:8000",
    "127.0.0.1.evil.example:8000",
    "localhost.evil.example:8000",
    "[::2]:8000",
    "",
]
FOREIGN_ORIGINS = ["http://evil.example", "null", "http://127.0.0.1:9000", "file://", "http://127.0.0.1"]


@pytest.fixture(scope="module")
def guarded(classifier):
    with asked(classifier, access=Access("0.0.0.0", 8000, TOKEN)) as client:
        yield client


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_a_foreign_host_is_refused(client, host):
    answer = client.get("/v1/info", headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:zicl:problem:foreign-host"
    assert "127.0.0.1" in answer.json()["expected"]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000", "localhost:9000"])
def test_the_servers_own_names_are_taken(client, host):
    assert client.get("/v1/info", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
@pytest.mark.parametrize("path", ["/v1/classify", "/v1/info", "/"])
def test_a_foreign_origin_is_refused(client, origin, path):
    answer = client.request("GET" if path != "/v1/classify" else "POST", path, headers={"Origin": origin})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:zicl:problem:foreign-origin"
    assert "access-control-allow-origin" not in answer.headers


def test_the_own_origin_is_taken(client):
    headers = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/v1/classify", json={"text": "Fine."}, headers=headers).status_code == 200


def test_another_site_may_link_to_the_page_and_to_nothing_else(client):
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/", headers=foreign).status_code == 200
    assert client.get("/v1/info", headers=foreign).status_code == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "sent", [None, "Bearer wrong", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer ümlaut"]
)
def test_every_route_asks_for_the_token(guarded, method, path, sent):
    headers = {} if sent is None else {"Authorization": sent.encode()}
    answer = guarded.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    if path == "/":
        # The page holds no secret, and asks the visitor for the token.
        assert answer.content == PAGE.html
    else:
        assert answer.json()["type"] == "urn:zicl:problem:unauthorized"


def test_the_token_opens_all_routes_under_any_name(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "server.example", "Origin": "https://server.example"}
    assert guarded.get("/v1/info", headers=headers).status_code == 200
    assert guarded.post("/v1/classify", json={"text": "Fine."}, headers=headers).status_code == 200
    foreign = {**headers, "Origin": "https://other.example"}
    assert guarded.get("/v1/info", headers=foreign).status_code == 403


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_for_all(guarded, path):
    assert guarded.get(path).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "server.example"])
def test_another_address_needs_a_token(host):
    with pytest.raises(UsageError, match="no token was given"):
        Access(host, 8000)
    assert Access(host, 8000, TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["", "  ", "tökén", "a\nb"])
def test_a_token_that_no_header_can_hold(token):
    with pytest.raises(UsageError, match="the token"):
        Access("127.0.0.1", 8000, token)


@pytest.mark.parametrize("path", ["/", "/v1/info", "/nothing", "/v1/classify"])
def test_every_answer_has_the_headers_that_keep_it_here(client, path):
    headers = client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert not any(name.startswith("access-control") for name in headers)
