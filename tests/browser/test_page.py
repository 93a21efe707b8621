"""The gateway's page in a real browser: both transports, publishing, bad days, small screens."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

BOTH_OPEN = ("['sse', 'websocket'].every(id => "
             "document.querySelector(`#${id} .state`).dataset.state === 'open')")


def open_page(page, gateway, channel, more="", **look):
    page.open(f"{gateway.url}/?channel={channel}{more}", **look)
    page.wait(BOTH_OPEN)


def rows(page, transport):
    return page.js("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)",
                   f"#{transport} li .data")


def wait_for_both(page, text):
    for transport in ("sse", "websocket"):
        page.wait(f"document.querySelector('#{transport} li:first-child .data')"
                  f"?.textContent === {text!r}")


def fill(page, name, text):
    field = page.driver.find_element(By.ID, name)
    field.clear()
    field.send_keys(text)


def test_shows_what_redis_cli_publishes_over_both_transports(page, gateway, redis, channel):
    open_page(page, gateway, channel)
    redis.publish(channel, "hello")
    wait_for_both(page, "hello")
    redis.publish(channel, "second")
    wait_for_both(page, "second")
    assert rows(page, "sse") == rows(page, "websocket") == ["second", "hello"]
    assert page.js("return document.querySelector('#sse .count').textContent") == "2 messages"


def test_watches_news_when_the_address_names_no_channel(page, gateway, redis):
    page.open(gateway.url)
    page.wait(BOTH_OPEN)
    redis.publish("news", "hello")
    wait_for_both(page, "hello")
    assert page.js("return document.getElementById('redis-line').textContent") == \
        "redis-cli PUBLISH tide:news hello"
    assert page.js("return document.getElementById('curl-line').textContent") == \
        f"curl -N {gateway.url}/sse/news"


def test_shows_markup_in_a_payload_as_text(page, gateway, redis, channel):
    open_page(page, gateway, channel)
    payload = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>\n<b>line 2</b>"
    redis.publish(channel, payload)
    wait_for_both(page, payload)
    assert page.js("return document.querySelectorAll('li img, li script, li b').length") == 0
    assert page.js("return window.hacked") is None


def test_publishes_from_the_form(page, gateway, channel):
    open_page(page, gateway, channel)
    fill(page, "data", '{"price": 41.5}')
    fill(page, "event", "quote")
    page.driver.find_element(By.ID, "send").click()
    wait_for_both(page, '{"price": 41.5}')
    for transport in ("sse", "websocket"):
        assert page.js(f"return document.querySelector('#{transport} .name').textContent") == "quote"
    page.wait("document.getElementById('publish-note').textContent.startsWith('Published')")


def test_says_why_publishing_is_refused_and_offers_it_no_more(page, closed_gateway, channel):
    open_page(page, closed_gateway, channel)
    page.driver.find_element(By.ID, "send").click()
    page.wait("document.getElementById('send').disabled")
    note = page.js("return document.getElementById('publish-note').textContent")
    assert note.startswith("Not published: ") and len(note) > len("Not published:  ()")
    assert page.js("return document.getElementById('data').disabled")


def test_both_transports_come_back_when_the_gateway_is_killed(page, gateway, redis, channel):
    open_page(page, gateway, channel)
    redis.publish(channel, "before")
    wait_for_both(page, "before")
    gateway.kill()
    page.wait(f"!({BOTH_OPEN})")
    page.screenshot("page-gateway-gone")
    gateway.start()
    page.wait(BOTH_OPEN, 45)
    redis.publish(channel, "after")
    wait_for_both(page, "after")
    for transport in ("sse", "websocket"):
        after, gap, before = rows(page, transport)
        assert (after, before) == ("after", "before")
        assert gap.startswith("missed ")


def test_keeps_no_more_than_200_rows(page, gateway, redis, channel):
    open_page(page, gateway, channel)
    redis.publish(channel, "first")
    for number in range(450):
        redis.client.publish(f"tide:{channel}", f"message {number}")
    wait_for_both(page, "message 449")
    for transport in ("sse", "websocket"):
        shown = rows(page, transport)
        assert shown == [f"message {number}" for number in range(449, 249, -1)]
        count = page.js(f"return document.querySelector('#{transport} .count').textContent")
        assert count == "451 messages"


def test_changes_the_channel_by_keyboard_alone(page, gateway, redis, channel):
    open_page(page, gateway, channel)
    page.js("document.body.focus()")
    keys = page.driver.switch_to.active_element
    keys.send_keys(Keys.TAB)
    assert page.js("return document.activeElement.id") == "channel"
    fill(page, "channel", channel + ":other" + Keys.ENTER)
    page.wait(f"{BOTH_OPEN} && location.search.endsWith('other')")
    redis.publish(channel + ":other", "there")
    wait_for_both(page, "there")
    page.driver.back()
    page.wait(f"document.getElementById('channel').value === {channel!r}")
    page.wait(BOTH_OPEN)
    redis.publish(channel, "here again")
    wait_for_both(page, "here again")


def test_refuses_a_name_that_no_channel_has(page, gateway):
    page.open(f"{gateway.url}/?channel=a%20b")
    note = page.wait("document.getElementById('channel-note').textContent")
    assert note.startswith("A channel is")


def test_every_control_has_a_name(page, gateway, channel):
    open_page(page, gateway, channel)
    nameless = page.js("""
        return [...document.querySelectorAll('input, button, [tabindex]')]
            .filter(e => !e.labels?.length && !e.getAttribute('aria-label') && !e.textContent.trim())
            .map(e => e.outerHTML)""")
    assert nameless == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width, height", [(1280, 800), (390, 844)])
def test_fits_the_screen(page, gateway, redis, width, height, dark):
    open_page(page, gateway, "news", more="&event=quote", width=width, height=height, dark=dark)
    for payload in ("hello", '{"symbol":"TIDE","price":41.5}', "x" * 300, "three\nlines\nof text"):
        redis.publish("news", payload)
    answer = page.run("return await publisher.publish('news', 'a named one', {event: 'quote'})")
    assert "thrown" not in answer
    wait_for_both(page, "a named one")
    assert page.js("return document.documentElement.scrollWidth") <= width
    page.screenshot(f"page-{width}x{height}-{'dark' if dark else 'light'}")
