"""Commands over a WebSocket: right ones, and every way to be wrong."""

import json

import pytest

from ws_client import TEXT, build

ERRORS = 'tidecast_websocket_commands_total{result="error"}'
BAD = {
    "": "not_json",
    "hello": "not_json",
    "{": "not_json",
    '{"ping":1}}': "not_json",
    '{"ping":1}{"ping":1}': "not_json",
    '{"ping":1,}': "not_json",
    "{'ping':1}": "not_json",
    '{"ping":1,"ping":1}': "not_json",
    '{"ping":NaN}': "not_json",
    '{"ping":1}\0': "not_json",
    '{"ping":"\\u0000"}': "not_json",
    '{"ping":"\\ud800"}': "not_json",
    '{"ping":' + "[" * 1000 + "]" * 1000 + "}": "not_json",
    "[" * 4000: "not_json",
    "[]": "not_an_object",
    "1": "not_an_object",
    "null": "not_an_object",
    '"ping"': "not_an_object",
    "{}": "no_verb",
    '{"req":1}': "no_verb",
    '{"ping":1,"subscribe":["a"]}': "no_verb",
    '{"shout":1}': "unknown_member",
    '{"ping":1,"shout":1}': "unknown_member",
    '{"ping":1,"since":"1-1"}': "unknown_member",
    '{"ping":1,"req":"1"}': "wrong_type",
    '{"ping":1,"req":1.5}': "wrong_type",
    '{"ping":1,"req":9223372036854775808}': "wrong_type",
    '{"subscribe":"a"}': "wrong_type",
    '{"subscribe":{}}': "wrong_type",
    '{"subscribe":[1]}': "wrong_type",
    '{"subscribe":[["a"]]}': "wrong_type",
    '{"subscribe":["a"],"since":1}': "wrong_type",
    '{"subscribe":[]}': "bad_channel",
    '{"subscribe":[""]}': "bad_channel",
    '{"subscribe":["a","b c"]}': "bad_channel",
    '{"subscribe":["' + "a" * 201 + '"]}': "bad_channel",
    '{"unsubscribe":null}': "wrong_type",
    '{"subscribe":["a"],"since":"' + "1" * 129 + '"}': "bad_name",
    '{"publish":"open:a"}': "wrong_type",
    '{"publish":{}}': "bad_channel",
    '{"publish":{"channel":"open:a"}}': "wrong_type",
    '{"publish":{"data":1}}': "bad_channel",
    '{"publish":{"channel":1,"data":1}}': "wrong_type",
    '{"publish":{"channel":"open:a","data":1,"to":"b"}}': "unknown_member",
    '{"publish":{"channel":"open:a","data":1,"event":"a b"}}': "bad_name",
    '{"publish":{"channel":"open:a","data":1,"event":"tidecast.gap"}}': "bad_name",
    '{"publish":{"channel":"open:a","data":1,"key":""}}': "bad_name",
    '{"publish":{"channel":"open:a","data":1,"idempotency_key":"' + "k" * 129 + '"}}': "bad_name",
    '{"publish":{"channel":"a","data":1}}': "publish_forbidden",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40].replace("\0", "NUL"))
def test_a_bad_command_gets_its_error_and_the_connection_lives(gateway, text):
    socket = gateway.ws(target="/ws")
    socket.send(text)
    answer = socket.next_json()
    assert answer["error"] == BAD[text] and answer["message"]
    assert socket.ask(ping=1) == {"req": 1, "pong": 1}


def test_errors_are_counted(gateway):
    before = gateway.metrics()[ERRORS]
    socket = gateway.ws(target="/ws")
    for _ in range(3):
        socket.send("{}")
        socket.next_json()
    assert gateway.metrics()[ERRORS] == before + 3


@pytest.mark.parametrize("req", [0, 1, -1, 2**63 - 1, -2**63])
def test_req_comes_back_as_it_was(gateway, req):
    socket = gateway.ws(target="/ws")
    assert socket.ask(ping=1, req=req)["req"] == req
    assert socket.ask(subscribe=[""], req=req)["error"] == "bad_channel"


def test_without_req_there_is_none(gateway):
    socket = gateway.ws(target="/ws")
    socket.command(ping=1)
    assert socket.next_json() == {"pong": 1}


def test_257_channels_are_one_too_many(gateway, channel):
    names = [f"{channel}.{number}" for number in range(257)]
    socket = gateway.ws(target="/ws")
    assert socket.ask(subscribe=names)["error"] == "too_many_channels"
    assert socket.ask(subscribe=names[:256])["subscribed"] == names[:256]
    assert socket.ask(subscribe=names[256:])["error"] == "too_many_channels"
    assert socket.ask(subscribe=names[:10])["subscribed"] == names[:10], "it has these already"
    assert socket.ask(unsubscribe=names[:1])["unsubscribed"] == names[:1]
    assert socket.ask(subscribe=names[256:])["subscribed"] == names[256:]


def test_the_same_channel_twice_is_one(cluster, gateway, channel):
    socket = gateway.ws(channel)
    assert socket.ask(subscribe=[channel, channel])["subscribed"] == [channel]
    assert socket.ask(subscribe=[channel])["subscribed"] == [channel]
    cluster.publish(channel, "once")
    cluster.publish(channel, "marker")
    assert [socket.next_json()["data"] for _ in range(2)] == ["once", "marker"]


def test_after_unsubscribe_nothing_comes(cluster, gateway, channel):
    other = channel + "b"
    socket = gateway.ws(channel, other)
    assert socket.ask(unsubscribe=[channel, "never:had"])["unsubscribed"] == [channel, "never:had"]
    cluster.publish(channel, "x")
    cluster.publish(other, "marker")
    assert socket.next_json()["data"] == "marker"
    assert socket.ask(subscribe=[channel])["subscribed"] == [channel]
    cluster.publish(channel, "again")
    assert socket.next_json() == {"channel": channel, "data": "again"}


def test_what_is_published_when_subscribe_is_answered_arrives(cluster, gateway, channel):
    socket = gateway.ws(target="/ws")
    for number in range(50):
        name = f"{channel}.{number}"
        socket.ask(subscribe=[name])
        cluster.publish(name, "now")
        assert socket.next_json() == {"channel": name, "data": "now"}


def test_a_since_that_cannot_be_resumed_is_told(gateway, channel):
    socket = gateway.ws(target="/ws")
    answer = socket.ask(subscribe=[channel], since="1-1")
    assert answer["subscribed"] == [channel]
    gap = socket.next_json()
    assert gap["channel"] == channel and gap["event"] == "tidecast.gap" and gap["id"] == answer["id"]
    assert gap["data"] == {"from": "1-1", "to": answer["id"], "reason": "resume_unavailable"}
    socket.ask(subscribe=[channel], since="")
    socket.ask(subscribe=[channel])
    assert socket.ask(ping=1)["pong"] == 1  # nothing but the answers came


@pytest.mark.parametrize("data", ["text", "", "ünï\n\"", {"a": [1, 2.50, {"b": None}]}, [], {}, [1],
                                  12, -1.5e300, True, None, 2**70])
def test_what_is_published_arrives_on_both_transports(gateway, channel, data):
    stream, socket = gateway.sse(channel), gateway.ws(channel)
    answer = socket.ask(publish={"channel": channel, "data": data, "event": "e"}, req=5)
    assert answer == {"req": 5, "published": {"id": answer["published"]["id"]}}
    event = stream.next_event()
    text = data if isinstance(data, str) else json.dumps(data)
    assert (event.type, event.data, event.id) == ("e", text, answer["published"]["id"])


def test_objects_and_arrays_keep_their_own_bytes(cluster, gateway, channel):
    socket = gateway.ws(channel)
    payload = '{"b" : 1.00,\n "a":[ 1e2 , "\\u00fc" ], "n":9007199254740993 }'
    cluster.publish(channel, payload)
    assert socket.next_text().text == f'{{"channel":"{channel}","data":{payload}}}'
    socket.send(f'{{"publish":{{"channel":"{channel}","data": {payload} }}}}')
    messages = [socket.next_text().text for _ in range(2)]
    assert any(text.endswith(f'"data":{payload}}}') for text in messages)


@pytest.mark.parametrize(("namespace", "payload", "data"), [
    ("open", "1", "1"), ("open", "true", "true"), ("open", '"s"', '"s"'), ("open", "{", "{"),
    ("open", "[1", "[1"), ("open", " {}", {}), ("open", "{} x", "{} x"), ("open", "", ""),
    ("text", '{"a":1}', '{"a":1}'), ("text", "[]", "[]"),
    ("json", "1", 1), ("json", '"s"', "s"), ("json", '{"a":1}', {"a": 1}), ("json", "null", None),
])
def test_the_namespace_decides_what_data_is(cluster, gateway, channel, namespace, payload, data):
    name = namespace + channel[4:]
    socket = gateway.ws(name)
    cluster.publish(name, payload)
    assert socket.next_json() == {"channel": name, "data": data}


def test_what_is_no_json_never_enters_a_json_namespace(cluster, gateway, channel):
    name = "json" + channel[4:]
    dropped = 'tidecast_messages_dropped_total{reason="not_json"}'
    before = gateway.metrics()[dropped]
    socket = gateway.ws(name)
    for payload in ("", "{", "text", "1 2", "NaN", "1\0", '{"a":1}x'):
        cluster.publish(name, payload)
        assert gateway.post(name, payload).json["error"] == "payload_not_json"
    cluster.publish(name, '"marker"')
    assert socket.next_json()["data"] == "marker"
    assert gateway.metrics()[dropped] == before + 7


@pytest.mark.parametrize(("channel_name", "data", "error"), [
    ("short:a", "x" * 17, "payload_too_big"), ("json:a", "no json", "payload_not_json"),
    ("nobody", "x", "publish_forbidden")])
def test_a_publish_that_is_refused_says_why(gateway, channel_name, data, error):
    socket = gateway.ws(target="/ws")
    assert socket.ask(publish={"channel": channel_name, "data": data})["error"] == error


def test_the_same_idempotency_key_publishes_once(gateway, channel):
    socket = gateway.ws(channel)
    publish = {"channel": channel, "data": "x", "idempotency_key": "k1"}
    first = socket.ask(publish=publish, req=1)["published"]
    again = socket.ask(publish=publish, req=2)["published"]
    assert first == again
    assert socket.ask(publish={**publish, "data": "y"}, req=3)["error"] == "idempotency_conflict"


def test_a_client_that_leaves_before_its_publish_is_answered(cluster, gateway, channel):
    stream = gateway.sse(channel)
    for _ in range(50):
        socket = gateway.ws(target="/ws")
        socket.command(publish={"channel": channel, "data": "bye"}, req=1)
        socket.close()
    cluster.fcall(channel, "marker")
    while stream.next_event().data != "marker":
        pass


def test_many_commands_in_one_segment_are_answered_in_order(gateway):
    socket = gateway.ws(target="/ws")
    socket.send_raw(b"".join(build(TEXT, json.dumps({"ping": 1, "req": n})) for n in range(1000)))
    assert [socket.next_json()["req"] for _ in range(1000)] == list(range(1000))


def test_nothing_follows_the_close_not_even_the_answer_to_a_publish(make_cluster):
    cluster = make_cluster(namespaces={"default": {"publish": "anyone"}})
    socket = cluster.gateway.ws(target="/ws")
    cluster.redis_client.execute_command("CLIENT", "PAUSE", "500", "ALL")
    socket.command(publish={"channel": "news", "data": "x"}, req=1)
    socket.send("", opcode=3)
    assert socket.next_close().close_code == 1002
    cluster.gateway.wait_metric('tidecast_connections{transport="websocket"}', 0)
    assert not socket.pending
    socket.wait_end()
    assert not socket.pending
