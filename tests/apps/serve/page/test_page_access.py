"""The page for everyone: by keyboard, by ear, in the dark and on a phone."""

import pytest

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

from tests.waiting import wait_until

pytestmark = pytest.mark.browser


def test_by_keyboard_alone(visitor):
    body = visitor.browser.find_element("tag name", "body")
    body.send_keys(Keys.TAB)
    assert visitor.js("return document.activeElement.id") == "skip"
    order = []
    for _ in range(40):
        visitor.browser.switch_to.active_element.send_keys(Keys.TAB)
        order.append(visitor.js("return document.activeElement.id"))
        if order[-1] == "run":
            break
    wanted = ["share", "theme", "text", "example", "suggest", "add-label", "k", "seed", "inference", "template", "run"]
    assert [each for each in order if each in wanted] == wanted
    text = visitor.one("#text")
    text.send_keys("The soup was cold.")
    text.send_keys(Keys.CONTROL, Keys.ENTER)
    wait_until(lambda: visitor.texts("#single .winner"))
    visitor.wait()
    assert visitor.js("return document.getElementById('status').textContent").startswith("Predicted ")
    visitor.one("#text").send_keys(Keys.TAB)
    ring = visitor.js("const s = getComputedStyle(document.activeElement); return [s.outlineStyle, s.outlineWidth]")
    assert ring == ["solid", "2px"]


def test_everything_has_a_name_and_a_place(visitor):
    visitor.classify("The soup was cold.")
    visitor.click("#single .numbers summary")
    nameless = visitor.js(
        """const wanted = "button, input, select, textarea, summary, [role=group], section, dialog, nav";
        return [...document.querySelectorAll(wanted)]
        .filter(e => e.getClientRects().length && !((e.ariaLabel || "").trim() || e.getAttribute("aria-labelledby")
            || [...(e.labels || [])].some(l => l.textContent.trim())
            || (/BUTTON|SUMMARY/.test(e.tagName) && e.textContent.trim())))
        .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    counts = (
        "return ['h1', 'main', 'header.top', 'footer', '[aria-live]'].map(s => document.querySelectorAll(s).length)"
    )
    assert visitor.js(counts) == [1, 1, 1, 1, 1]
    assert visitor.js("return [...document.querySelectorAll('table')].every(t => t.caption && t.caption.textContent)")
    assert visitor.js(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length === new Set(ids).size"
    )


CONTRAST = """
const probe = document.createElement("i"); document.body.append(probe);
const light = name => { probe.style.color = `var(--${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).map(v => v / 255)
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b; };
const ratio = ([a, b]) => {
  const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + .05) / (Math.min(x, y) + .05); };
const found = arguments[0].map(ratio); probe.remove(); return found;
"""
PAIRS = [
    *(("ink", ground) for ground in ("page", "surface", "sunken", "given", "scored", "accent-mid")),
    *(("quiet", ground) for ground in ("page", "surface", "sunken", "wrong-soft", "accent-soft")),
    *(("accent", ground) for ground in ("surface", "accent-soft")),
    ("accent-ink", "accent"),
    ("wrong", "wrong-soft"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_read(visitor, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    visitor.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    poor = {pair: ratio for pair, ratio in zip(PAIRS, visitor.js(CONTRAST, PAIRS), strict=True) if ratio < 4.5}
    assert poor == {}
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = visitor.js(ground)
    visitor.click("#theme")
    assert visitor.js(ground) != before
    visitor.open()
    assert visitor.js(ground) != before  # it is remembered
    visitor.js("localStorage.clear()")


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_nothing_sticks_out(visitor, width):
    size = {"width": width, "height": 720, "deviceScaleFactor": 1, "mobile": width < 600}
    visitor.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    visitor.classify("The soup was " + "very" * 80 + " cold, and the waiter smiled.")
    assert visitor.js("return document.documentElement.scrollWidth") <= width
    visitor.choose("mode", "many")
    visitor.paste("#texts", "The soup was thin.\nA bold film about a train.")
    visitor.run()
    assert visitor.js("return document.documentElement.scrollWidth") <= width
