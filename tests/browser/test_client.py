"""tidecast.js on an empty page of the gateway's origin, through a proxy with bad days."""

import pytest

from browser_setup import eventually

TRANSPORTS = pytest.mark.parametrize("transport", ["sse", "websocket"])
QUICK = {"backoffMin": 100, "backoffMax": 300}


def start(page, proxy, transport, *channels, **options):
    """Makes `tide`, whose events are kept by name in `seen`."""
    page.open(f"{proxy.url}/blank")
    page.wait("typeof Tidecast === 'function'")
    page.js("""
        window.sent = [];
        const send = WebSocket.prototype.send;
        WebSocket.prototype.send = function (text) { sent.push(JSON.parse(text)); send.call(this, text); };
        window.seen = {};
        window.tide = new Tidecast(arguments[0]);
        for (const name of ['open', 'message', 'event:quote', 'gap', 'status', 'close'])
            tide.on(name, what => (seen[name] ??= []).push(what));
        """, {"transport": transport, "channels": channels, **options})


def start_open(page, proxy, transport, *channels, **options):
    start(page, proxy, transport, *channels, **options)
    page.wait("tide.state === 'open'")


def wait_for_message(page, raw):
    return page.wait(f"seen.message?.find(m => m.raw === {raw!r})")


@TRANSPORTS
def test_survives_three_seconds_of_503(page, proxy, redis, channel, transport):
    start_open(page, proxy, transport, channel)
    page.js("window.native = new EventSource('/sse/' + arguments[0])", channel)
    page.wait("native.readyState === EventSource.OPEN")
    proxy.refuse()
    # The browser's own gives up for good; that is what the client is for.
    page.wait("native.readyState === EventSource.CLOSED")
    page.run("await new Promise(resolve => setTimeout(resolve, 3000)); return 1")
    page.wait("tide.state !== 'open'")
    proxy.forward()
    page.wait("tide.state === 'open'", 30)
    redis.publish(channel, "after the storm")
    wait_for_message(page, "after the storm")
    assert page.js("return native.readyState") == 2
    assert any(s["state"] == "waiting" and s["retryIn"] >= 0 for s in page.js("return seen.status"))


def test_backs_off_with_full_jitter_up_to_its_bound(page, proxy, channel):
    start(page, proxy, "sse", channel, timing={"backoffMin": 20, "backoffMax": 80})
    page.js("tide.close()")
    delays = page.run("""
        const delays = [];
        const real = window.setTimeout;
        const made = new Tidecast({timing: {backoffMin: 1000, backoffMax: 30000}});
        made.on('status', s => s.state === 'waiting' && delays.push(s.retryIn));
        for (let i = 0; i < 400; i++)
            made.lost('test');
        made.close();
        return delays""")
    assert max(delays[:1]) <= 1000 and max(delays[:2]) <= 2000
    settled = delays[5:]
    assert max(settled) <= 30000
    assert max(settled) > 25000 and min(settled) < 5000


def test_starts_the_backoff_afresh_only_after_ten_healthy_seconds(page, proxy):
    start(page, proxy, "sse")
    attempts = page.run("""
        const made = new Tidecast();
        const after = ms => {
            made.attempts = 5;
            made.opened();
            made.openedAt = performance.now() - ms;
            made.lost('test');
            return made.attempts;
        };
        return [after(9000), after(11000)]""")
    assert attempts == [6, 1]


@TRANSPORTS
def test_resumes_after_the_last_id_it_saw(page, proxy, channel, transport):
    start_open(page, proxy, transport, channel, timing=QUICK)
    answer = page.run("return await tide.publish(arguments[0], 'one')", channel)
    wait_for_message(page, "one")
    known = page.js("return tide.lastEventId")
    assert known == answer["id"]
    proxy.refuse()
    page.wait("tide.state === 'waiting'")
    proxy.forward()
    page.wait("tide.state === 'open'")
    if transport == "sse":
        assert f"lastEventId={known}" in proxy.targets("/sse")[-1]
    else:
        assert page.js("return sent[sent.length - 1]") == \
            {"subscribe": [channel], "since": known, "req": 1}


@TRANSPORTS
def test_hands_over_text_and_json(page, proxy, redis, channel, transport):
    start_open(page, proxy, transport, channel)
    for payload, data in (("plain", "plain"), ('{"a": [1, 2.50]}', {"a": [1, 2.5]}), ("12", "12"),
                          ("[broken", "[broken"), ('say "data":', 'say "data":')):
        redis.publish(channel, payload)
        message = wait_for_message(page, payload)
        assert message["data"] == data
        assert message["channel"] == channel


@TRANSPORTS
def test_named_events_arrive_by_their_name(page, proxy, channel, transport):
    start_open(page, proxy, transport, channel)
    page.run("await tide.publish(arguments[0], {price: 4}, {event: 'quote'}); return 1", channel)
    quote = page.wait("seen['event:quote']")[0]
    assert (quote["event"], quote["data"]) == ("quote", {"price": 4})
    assert page.js("return seen.message.length") == 1


@TRANSPORTS
def test_takes_and_leaves_channels_on_the_way(page, proxy, redis, channel, transport):
    first, second = channel + ":1", channel + ":2"
    start_open(page, proxy, transport, first)
    page.run("await tide.subscribe(arguments[0]); return 1", [second])
    page.wait("tide.state === 'open'")
    redis.publish(first, "on one")
    redis.publish(second, "on two")
    wait_for_message(page, "on one")
    message = wait_for_message(page, "on two")
    assert message.get("channel") == (second if transport == "websocket" else None)
    page.run("await tide.unsubscribe(arguments[0]); return 1", [first])
    page.wait("tide.state === 'open'")
    redis.client.publish(f"tide:{first}", "unheard")
    redis.publish(second, "still on two")
    wait_for_message(page, "still on two")
    assert page.js("return seen.message.some(m => m.raw === 'unheard')") is False


@TRANSPORTS
def test_publishing_tells_what_became_of_it(page, proxy, channel, transport):
    start_open(page, proxy, transport, channel)
    publish = "return await tide.publish(arguments[0], arguments[1], {idempotencyKey: 'k1'})"
    first = page.run(publish, channel, "once")
    assert first["id"]
    assert page.run(publish, channel, "once")["id"] == first["id"]
    refused = page.run(publish, channel, "another")["thrown"]
    assert refused["name"] == "TidecastError" and refused["code"] and refused["message"]
    assert page.run("return await tide.publish('a', undefined)")["thrown"]["name"] == "TypeError"
    page.js("tide.close()")
    assert page.run(publish, channel, "late")["thrown"]["code"] == "closed"


@TRANSPORTS
def test_a_refused_publish_has_the_servers_reason(page, closed_gateway, transport):
    page.open(closed_gateway.url)
    refused = page.run("""
        const tide = new Tidecast({channels: ['a'], transport: arguments[0]});
        await new Promise(resolve => tide.on('open', resolve));
        return await tide.publish('a', 'hello')""", transport)["thrown"]
    assert refused["code"] and refused["message"]
    if transport == "sse":
        assert refused["status"] == 403


def test_a_publish_whose_connection_is_lost_is_not_left_hanging(page, proxy, channel):
    start_open(page, proxy, "websocket", channel)
    proxy.silence()
    page.js("tide.publish(arguments[0], 'x').catch(e => { window.failed = e.code; })", channel)
    proxy.refuse()
    page.wait("window.failed === 'connection_lost'")
    page.wait("tide.state === 'waiting'")
    assert page.run("return await tide.publish('a', 'x')")["thrown"]["code"] == "not_connected"


def test_a_silent_websocket_is_asked_and_replaced(page, proxy, redis, channel):
    start_open(page, proxy, "websocket", channel,
               timing={**QUICK, "silence": 300, "answer": 1000})
    page.run("await new Promise(resolve => setTimeout(resolve, 1500)); return 1")
    assert page.js("return seen.status.length") == 2, "an answered ping must not reconnect"
    proxy.silence()
    page.wait("seen.status.some(s => s.reason === 'silent')")
    proxy.forward()
    page.wait("tide.state === 'open'")
    redis.publish(channel, "back")
    wait_for_message(page, "back")


@pytest.mark.parametrize("code, reason", [(4401, "unauthorised"), (4403, "forbidden")])
def test_a_refused_token_ends_it(page, proxy, channel, code, reason):
    start_open(page, proxy, "websocket", channel, timing=QUICK)
    proxy.close_sockets(code)
    closed = page.wait("seen.close")
    assert closed == [{"reason": reason, "code": code}]
    assert page.js("return tide.state") == "closed"


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1012, 1013])
def test_every_other_close_is_followed_by_a_reconnect(page, proxy, channel, code):
    start_open(page, proxy, "websocket", channel, timing=QUICK)
    proxy.close_sockets(code)
    page.wait(f"seen.status.some(s => s.reason === 'closed with {code}')")
    proxy.forward()
    page.wait("tide.state === 'open'")


@TRANSPORTS
def test_close_is_for_good(page, proxy, channel, transport):
    start_open(page, proxy, transport, channel, timing=QUICK)
    page.js("tide.close(); tide.close()")
    assert page.js("return seen.close") == [{"reason": "closed"}]
    before = len(proxy.requests)
    page.run("dispatchEvent(new Event('online'));"
             "await new Promise(resolve => setTimeout(resolve, 1000)); return 1")
    assert len(proxy.requests) == before


@TRANSPORTS
def test_a_page_that_was_left_holds_no_connection_and_resumes(page, proxy, redis, channel, transport):
    start_open(page, proxy, transport, channel)
    page.driver.get(f"{proxy.url}/module")
    eventually(lambda: proxy.stream_count == 0, what="the end of the left page's stream")
    page.driver.back()
    page.wait("window.tide?.state === 'open'")
    redis.publish(channel, "welcome back")
    wait_for_message(page, "welcome back")


def test_a_listener_that_throws_harms_nobody(page, proxy, redis, channel):
    start(page, proxy, "sse")
    page.js("""
        window.thrown = [];
        addEventListener('error', e => thrown.push(e.message));
        tide.close();
        window.tide = new Tidecast({channels: [arguments[0]]});
        tide.on('message', () => { throw new Error('mine'); });
        tide.on('message', m => (seen.message ??= []).push(m));
        """, channel)
    page.wait("tide.state === 'open'")
    redis.publish(channel, "hello")
    wait_for_message(page, "hello")
    page.wait("thrown.length === 1")


def test_a_gap_is_told_as_such(page, proxy):
    start(page, proxy, "websocket")
    page.wait("tide.state === 'open'")
    gap = {"from": "1-0", "to": "9-0", "reason": "trimmed"}
    page.js("""
        tide.stream.onText(JSON.stringify(
            {channel: 'a', id: '9-0', event: 'tidecast.gap', data: arguments[0]}));
        tide.close();
        """, gap)
    assert page.js("return seen.gap") == [{"channel": "a", **gap}]
    assert page.js("return seen.message") is None


def test_an_sse_client_without_channels_waits_for_one(page, proxy, redis, channel):
    start(page, proxy, "sse")
    page.wait("tide.state === 'idle'")
    page.run("await tide.subscribe(arguments[0]); return 1", channel)
    page.wait("tide.state === 'open'")
    redis.publish(channel, "hello")
    wait_for_message(page, "hello")


def test_is_a_module_too(page, proxy):
    page.open(f"{proxy.url}/module")
    assert page.wait("window.imported") == "function"
