import base64
import hashlib
import re

from zicl.serve.page import load_page, policy


def sha(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_inline_blocks_are_named_by_their_hashes():
    found = policy(
        "<style>p{}</style>\r\n<script>a < b && c\r\n</script><p>x</p><script type=module>\n2 &amp; 3</script>"
    )
    parts = dict(part.split(" ", 1) for part in found.split("; "))
    assert parts["style-src"] == sha("p{}")
    assert parts["script-src"] == f"{sha('a < b && c' + chr(10))} {sha(chr(10) + '2 &amp; 3')}"
    assert parts["default-src"] == parts["base-uri"] == parts["form-action"] == parts["frame-ancestors"] == "'none'"


def test_the_page_has_no_outside_resource_and_a_strict_policy():
    page = load_page()
    text = page.html.decode()
    assert "unsafe" not in page.policy
    assert "http" not in page.policy
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", text)
    assert page.policy.count("sha256-") >= 2
