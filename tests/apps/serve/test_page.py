import base64
import hashlib
import re

from zicl.apps.serve.page import load_page


def sha(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_what_stands_in_the_page_is_named_by_its_hash_and_nothing_else_is_allowed():
    page = load_page()
    parts = dict(part.split(" ", 1) for part in page.policy.split("; "))
    for tag in ("style", "script"):
        (block,) = re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page.html.decode(), re.DOTALL)
        assert parts[f"{tag}-src"] == sha(block)
    assert parts["default-src"] == parts["base-uri"] == parts["form-action"] == parts["frame-ancestors"] == "'none'"
    assert parts["connect-src"] == "'self'"
    assert "unsafe" not in page.policy
    assert "http" not in page.policy


def test_the_page_has_no_outside_resource():
    text = load_page().html.decode()
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", text)
