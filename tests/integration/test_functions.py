"""The Function library alone, against a real redis-server."""

import pathlib
import re
import threading

import pytest
import redis

from redis_server import LIBRARY, RedisServer

ACL_FILE = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "redis-users.acl"
TEXT = "messages=1000 ttl_ms=600000 max_payload=65536 content=auto"
ROWS = {
    "ns:default": TEXT,
    "ns:few": "messages=3 ttl_ms=600000 max_payload=65536 content=auto",
    "ns:brief": "messages=10 ttl_ms=30 max_payload=65536 content=auto",
    "ns:live": "messages=0 ttl_ms=600000 max_payload=65536 content=auto",
    "ns:json": "messages=10 ttl_ms=600000 max_payload=4096 content=json",
    "ns:tiny": "messages=10 ttl_ms=600000 max_payload=8 content=text",
}


class Tide:
    """Calls the functions as one user under one prefix."""

    def __init__(self, client, prefix="tide:"):
        self.client = client
        self.prefix = prefix

    def call(self, name, key, *args):
        answer = self.client.execute_command("FCALL", f"tidecast_{name}", 1, key, *args)
        return answer.decode() if isinstance(answer, bytes) else answer

    def publish(self, channel, payload, **options):
        pairs = [part for pair in options.items() for part in pair]
        return self.call("publish", self.prefix + channel, payload, *pairs)

    def configure(self, rows=None, schema="1", digest="h"):
        pairs = [part for pair in (rows or ROWS).items() for part in pair]
        return self.call("configure", self.prefix + "$config", schema, "hash", digest, *pairs)

    def probe(self, token="t"):
        return self.call("probe", self.prefix + "$probe:x", token)

    def lease(self, owner, ttl_ms=10000):
        return self.call("lease", self.prefix + "$lease", owner, ttl_ms)

    def entries(self, channel):
        log = self.client.xrange(f"{self.prefix}$log:{{{channel}}}")
        return [(at.decode(), {k.decode(): v.decode() for k, v in row.items()}) for at, row in log]

    def control(self, name):
        value = self.client.get(self.prefix + name)
        return value and value.decode()

    def state(self):
        """All that is stored, but for what ages by itself."""
        return {key: self.client.dump(key) for key in sorted(self.client.keys("*"))}


@pytest.fixture(scope="module")
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture
def tide(server):
    with server.connect() as client:
        client.config_set("maxmemory", 0)
        client.flushall()
        server.load_library()
        api = Tide(client)
        api.configure()
        yield api


@pytest.fixture
def heard(server, tide):
    """What subscribers of tide:* get, as (channel, data)."""
    with server.connect() as client, client.pubsub() as pubsub:
        pubsub.psubscribe("tide:*")
        assert pubsub.get_message(timeout=5)["type"] == "psubscribe"

        def take(count):
            found = []
            while len(found) < count:
                message = pubsub.get_message(timeout=5)
                assert message, f"only {found}"
                found.append((message["channel"].decode(), message["data"]))
            assert pubsub.get_message(timeout=0.02) is None
            return found

        yield take


def parts(an_id):
    ms, seq = an_id.split("-")
    return int(ms), int(seq)


def redis_ms(tide):
    seconds, micros = tide.client.time()
    return seconds * 1000 + micros // 1000


def refuses(code):
    return pytest.raises(redis.ResponseError, match=rf"^TIDECAST {code} ")


def test_tells_its_version(tide):
    version = re.search(r"^local VERSION = (\d+)$", LIBRARY.read_text(), re.M)
    assert tide.client.execute_command("FCALL_RO", "tidecast_version", 0) == int(version[1])


def test_publishes_an_envelope_and_stores_the_same(tide, heard):
    first = tide.publish("news", "one")
    second = tide.publish("news", "two\n", event="price", key="AAPL", idempotency="k1")
    assert parts(first) < parts(second)
    born = tide.control("$born")
    assert tide.entries("news") == [
        (first, {"payload": "one", "event": "", "key": "", "prev": born}),
        (second, {"payload": "two\n", "event": "price", "key": "AAPL", "prev": first}),
    ]
    assert heard(2) == [
        ("tide:news", f"\x001 id={first} prev={born}\none".encode()),
        ("tide:news", f"\x001 id={second} prev={first} event=price key=AAPL\ntwo\n".encode()),
    ]
    assert tide.control("$clock") == second
    assert 590000 < tide.client.pttl("tide:$log:{news}") <= 600000


def test_publishes_without_history_with_an_id_and_no_prev(tide, heard):
    an_id = tide.publish("live:x", "{}")
    assert heard(1) == [("tide:live:x", f"\x001 id={an_id}\n{{}}".encode())]
    assert tide.client.keys("*$log*") == []
    assert tide.control("$clock") == an_id


def test_ids_rise_across_channels_and_never_repeat(tide):
    ids = [tide.publish(f"c{i % 7}", "x") for i in range(500)]
    assert len(set(ids)) == 500
    assert ids == sorted(ids, key=parts)


def test_ids_rise_under_concurrent_publishers(server, tide):
    ids, failures = [], []

    def work(number):
        with server.connect() as client:
            api = Tide(client)
            try:
                ids.extend(api.publish("busy", f"{number}") for _ in range(200))
            except redis.RedisError as error:
                failures.append(error)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert len(set(ids)) == 800
    stored = tide.entries("busy")
    assert [at for at, _ in stored] == sorted(ids, key=parts)
    for (before, _), (_, row) in zip(stored, stored[1:]):
        assert row["prev"] == before


BAD_CHANNELS = [
    "", "a" * 201, "a b", "a\rb", "a\nb", "a\0b", "\0", "$x", "$config", "$log:{a}", "a$", "é", "a%0a",
    "a{b}", "a*", "a'", "news\n",
]


@pytest.mark.parametrize("channel", BAD_CHANNELS)
def test_refuses_a_bad_channel_and_writes_nothing(tide, channel):
    before = tide.state()
    with refuses("bad_channel"):
        tide.publish(channel, "x")
    assert tide.state() == before


@pytest.mark.parametrize("channel", ["a", "a" * 200, "..", "A-Z_0.9:/@", ":a", "a:", "ns:x:y"])
def test_takes_a_good_channel(tide, channel):
    assert parts(tide.publish(channel, "x"))


@pytest.mark.parametrize("prefix", ["", ":", "a" * 33 + ":", "a.b:", "t{}:", "é:", "a b:", "$:"])
def test_refuses_a_bad_prefix(tide, prefix):
    with refuses("bad_channel"):
        tide.call("publish", prefix + "news", "x")
    with refuses("bad_arguments"):
        tide.call("probe", prefix + "$probe:x", "t")
    with refuses("bad_arguments"):
        tide.call("lease", prefix + "$lease", "me", 1000)
    with refuses("bad_arguments"):
        tide.call("configure", prefix + "$config", "1", "hash", "h", "ns:default", TEXT)


def test_prefix_ends_at_the_first_colon(tide):
    with refuses("config_missing"):
        tide.call("publish", "tide2:tide:news", "x")
    other = Tide(tide.client, "T_i-9" + "x" * 27 + ":")
    other.configure()
    other.publish("tide:news", "x")
    assert tide.client.exists(other.prefix + "$log:{tide:news}")
    assert tide.control("$clock") is None, "deployments share no clock"


def test_refuses_other_than_one_key(tide):
    for keys in ([], ["tide:a", "tide:b"]):
        with refuses("bad_channel"):
            tide.client.execute_command("FCALL", "tidecast_publish", len(keys), *keys, "x")


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["x", "event"],
        ["x", "Event", "e"],
        ["x", "payload", "e"],
        ["x", "event", "a", "event", "b"],
        ["x", "", ""],
    ],
)
def test_refuses_bad_arguments(tide, args):
    with refuses("bad_arguments"):
        tide.call("publish", "tide:news", *args)


@pytest.mark.parametrize(
    ("option", "longest", "code"),
    [("event", 100, "bad_event"), ("key", 200, "bad_key"), ("idempotency", 128, "bad_idempotency_key")],
)
def test_bounds_every_name(tide, option, longest, code):
    tide.publish("news", "x", **{option: "a" * longest})
    for bad in ("", "a" * (longest + 1), "a b", "a\n", "a\0", "é", "a\r\ndata: p"):
        before = tide.state()
        with refuses(code):
            tide.publish("news", "x", **{option: bad})
        assert tide.state() == before


def test_keeps_its_own_event_names_to_itself(tide):
    with refuses("bad_event"):
        tide.publish("news", "x", event="tidecast.gap")
    tide.publish("news", "x", event="tidecast")


def test_takes_a_payload_at_the_limit_and_refuses_one_past_it(tide):
    tide.publish("tiny:x", "a" * 8)
    tide.publish("tiny:x", "")
    with refuses("payload_too_big"):
        tide.publish("tiny:x", "a" * 9)
    tide.publish("news", "a" * 65536)
    with refuses("payload_too_big"):
        tide.publish("news", "a" * 65537)


GOOD_UTF8 = ["a\0b", "é", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
BAD_UTF8 = [
    b"\xff", b"\xfe", b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80",
    b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xc3", b"\xe2\x82",
    b"\xf0\x9f\x98", b"\xe2\xc3\xa9\x82\xac", b"\xc3\xa9\xa9", b"ok\xc3(", b"\xe2(\xa1",
]


@pytest.mark.parametrize("payload", GOOD_UTF8)
def test_takes_utf8(tide, payload):
    tide.publish("news", payload + "x" + payload)
    assert tide.entries("news")[-1][1]["payload"] == payload + "x" + payload


@pytest.mark.parametrize("payload", BAD_UTF8)
def test_refuses_what_is_not_utf8(tide, payload):
    before = tide.state()
    for around in (payload, b"x" + payload, payload + b"x", payload + "é".encode()):
        with refuses("payload_not_utf8"):
            tide.publish("news", around)
    assert tide.state() == before


def test_refuses_a_forged_envelope(tide):
    before = tide.state()
    for payload in (b"\0", b"\x001 id=9-9\nforged", b"\x002 id=1-1\nx"):
        with refuses("payload_enveloped"):
            tide.publish("news", payload)
    assert tide.state() == before


@pytest.mark.parametrize(
    "payload",
    ["{}", "[]", '""', "0", "-1.5e-7", "null", ' {"a":[1,2.0,true]}\r\n\t', r'"\u00e9\\\" \/"', '"a.-b"',
     '{"a":"x\\"1.","b":"-.5"}', "[" * 100 + "]" * 100],
)
def test_takes_json_where_the_namespace_asks_for_it(tide, payload):
    tide.publish("json:x", payload)


@pytest.mark.parametrize(
    "payload",
    ["", " ", "hello", "{", '{"a":1', '{"a":1}}', "{a:1}", "[1,]", "'a'", "01", "+1", "1.", "-.5", ".5",
     "-", "1e", "0x10", "NaN", "Infinity", "-Infinity", "nan", "tru", '"\t"', '"a\nb"', '"a\0b"',
     r'"\x"', '"\x1f"', "[1 2]", "{}{}", "[" * 2000 + "]" * 2000, '["\\\\","\n"]'],
)
def test_refuses_what_is_not_json(tide, payload):
    before = tide.state()
    with refuses("payload_not_json"):
        tide.publish("json:x", payload)
    assert tide.state() == before


def test_a_namespace_without_a_section_is_the_default(tide):
    tide.configure({"ns:default": ROWS["ns:tiny"], "ns:wide": TEXT})
    for channel in ("unknown:x", "plain", ":x", "WIDE:x", "wide"):
        with refuses("payload_too_big"):
            tide.publish(channel, "a" * 9)
    tide.publish("wide:x", "a" * 9)


def test_says_that_the_table_is_missing(tide):
    tide.client.delete("tide:$config")
    with refuses("config_missing"):
        tide.publish("news", "x")
    tide.client.hset("tide:$config", mapping={"schema": "1", "ns:news": TEXT})
    with refuses("config_missing"):
        tide.publish("other:x", "x")
    assert tide.client.keys("*$clock*") == []


@pytest.mark.parametrize("schema", ["2", "x", "", "-1", "1" * 30])
def test_refuses_a_table_of_a_newer_schema(tide, schema):
    tide.client.hset("tide:$config", "schema", schema)
    with refuses("config_unsupported"):
        tide.publish("news", "x")


@pytest.mark.parametrize(
    "row",
    ["", "messages=1", TEXT.replace("auto", "xml"), TEXT.replace("1000", "-1"),
     TEXT.replace("600000", "0"), TEXT.replace("1000", "9" * 20), TEXT.replace("65536", "1e3")],
)
def test_refuses_a_malformed_row(tide, row):
    with refuses("bad_arguments"):
        tide.configure({"ns:default": TEXT, "ns:bad": row})
    tide.client.hset("tide:$config", "ns:bad", row)
    with refuses("config_unsupported"):
        tide.publish("bad:x", "x")
    tide.publish("news", "x")


def test_ignores_a_newer_field_of_a_row(tide):
    tide.configure({"ns:default": TEXT + " compress=yes"})
    tide.publish("news", "x")


def test_rewrites_the_table_at_once_and_drops_what_vanished(tide):
    assert tide.configure({"ns:default": TEXT, "ns:a": TEXT}, digest="2") == 1
    assert tide.configure({"ns:default": TEXT, "ns:a": TEXT}, digest="2") == 0
    assert tide.configure({"ns:default": TEXT}, digest="3") == 1
    table = tide.client.hgetall("tide:$config")
    assert table == {b"schema": b"1", b"hash": b"3", b"ns:default": TEXT.encode()}
    tide.client.hdel("tide:$config", "hash")
    assert tide.configure({"ns:default": TEXT}, digest="3") == 1


def test_upgrades_an_older_schema_and_spares_a_newer_one(tide):
    tide.client.hset("tide:$config", "schema", "0")
    assert tide.configure() == 1
    tide.client.hset("tide:$config", "schema", "2")
    before = tide.state()
    for schema in ("1", "3"):
        with refuses("config_unsupported"):
            tide.configure(schema=schema)
    assert tide.state() == before


@pytest.mark.parametrize(
    "args",
    [["1", "hash", "h"], ["1", "ns:default", TEXT], ["x", "hash", "h", "ns:default", TEXT],
     ["1", "hash", "h", "ns:default", TEXT, "ns:default", TEXT], ["1", "hash"], [],
     ["1", "hash", "h", "ns:default", TEXT, "schema", "9"],
     ["1", "hash", "h", "ns:default", TEXT, "ns:a b", TEXT]],
)
def test_refuses_a_malformed_table(tide, args):
    before = tide.state()
    with refuses("bad_arguments"):
        tide.call("configure", "tide:$config", *args)
    assert tide.state() == before


def test_a_lost_clock_begins_a_new_history_and_repeats_no_id(tide):
    old = [tide.publish("news", "x") for _ in range(3)]
    old_born = tide.control("$born")
    tide.client.delete("tide:$clock")
    new = tide.publish("news", "y")
    assert parts(new) > parts(old[-1])
    assert tide.entries("news")[-1][1]["prev"] == old[-1]
    assert parts(tide.control("$born")) >= parts(old_born)


def test_a_clock_lost_within_a_millisecond_repeats_no_id_of_another_channel(tide):
    for _ in range(100):
        tide.probe()
        wait_a_millisecond(tide)
        first = [tide.publish("a", "x") for _ in range(3)][-1]
        tide.client.delete("tide:$clock", "tide:$born")
        assert parts(tide.publish("b", "x")) > parts(first)
        tide.client.delete("tide:$log:{a}", "tide:$log:{b}")
        wait_a_millisecond(tide)


def test_a_lost_clock_is_older_than_no_history(tide):
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$born", f"{far}-7")
    assert tide.publish("live:x", "x") == f"{far}-8"


def test_a_lost_clock_is_older_than_no_stream(tide):
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$clock", f"{far}-7")
    assert tide.publish("news", "x") == f"{far}-8"
    tide.client.delete("tide:$clock", "tide:$born")
    assert tide.publish("news", "x") == f"{far}-9"


def test_a_step_back_of_the_hosts_clock_stops_nothing(tide):
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$clock", f"{far}-0")
    ids = [tide.publish("news", "x") for _ in range(12)]
    assert ids == [f"{far}-{i}" for i in range(1, 13)]


def test_after_a_step_back_an_expired_entry_is_not_forgotten(tide):
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$clock", f"{far}-0")
    tide.client.set("tide:$born", "5-0")
    lost = tide.publish("brief:x", "gone")
    wait_until_gone(tide, "tide:$log:{brief:x}")
    tide.publish("brief:x", "x")
    assert parts(tide.entries("brief:x")[0][1]["prev"]) >= parts(lost)


def wait_a_millisecond(tide):
    since = redis_ms(tide)
    while redis_ms(tide) == since:
        pass


def wait_until_gone(tide, key):
    while tide.client.exists(key):
        pass


def test_prev_of_an_expired_stream_is_as_old_as_its_entries_could_be(tide):
    tide.client.set("tide:$clock", "1000-0")
    tide.client.set("tide:$born", "1000-0")
    first = tide.publish("brief:x", "x")
    prev = parts(tide.entries("brief:x")[0][1]["prev"])
    assert parts(first)[0] - 31 <= prev[0] <= parts(first)[0] - 30
    wait_until_gone(tide, "tide:$log:{brief:x}")
    second = tide.publish("brief:x", "x")
    prev = parts(tide.entries("brief:x")[0][1]["prev"])
    assert parts(first) < prev < parts(second)


def test_prev_is_never_before_this_history_began(tide):
    tide.publish("news", "x")
    assert tide.entries("news")[0][1]["prev"] == tide.control("$born")


def test_a_lost_born_means_that_nothing_is_known(tide):
    first = tide.publish("a", "x")
    tide.client.delete("tide:$born")
    tide.publish("b", "x")
    assert tide.entries("b")[0][1]["prev"] == first
    assert tide.control("$born") == first


def test_another_table_is_no_promise_about_what_came_before(tide):
    tide.publish("live:x", "not stored")
    at = tide.control("$clock")
    tide.configure({"ns:default": TEXT}, digest="2")
    tide.publish("live:x", "stored")
    assert tide.entries("live:x")[0][1]["prev"] == at


def test_keeps_as_many_as_the_namespace_says(tide):
    ids = [tide.publish("few:x", f"{i}") for i in range(5)]
    stored = tide.entries("few:x")
    assert [at for at, _ in stored] == ids[2:]
    assert [row["prev"] for _, row in stored] == ids[1:4]


@pytest.mark.parametrize("cut", ["trim", "delete"])
def test_a_trimmed_stream_still_knows_its_last_id(tide, cut):
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$clock", f"{far}-0")
    last = [tide.publish("news", "x") for _ in range(3)][-1]
    if cut == "trim":
        tide.client.xtrim("tide:$log:{news}", maxlen=0, approximate=False)
    else:
        for at, _ in tide.entries("news"):
            tide.client.xdel("tide:$log:{news}", at)
    tide.client.delete("tide:$clock")
    new = tide.publish("news", "y")
    assert parts(new) > parts(last)
    assert tide.entries("news") == [
        (new, {"payload": "y", "event": "", "key": "", "prev": last})
    ]


def test_a_flush_in_between_begins_anew(tide):
    first = tide.publish("news", "x")
    tide.client.flushall()
    wait_a_millisecond(tide)
    with refuses("config_missing"):
        tide.publish("news", "x")
    tide.configure()
    second = tide.publish("news", "x")
    assert parts(second) > parts(first)
    assert parts(tide.entries("news")[0][1]["prev"]) > parts(first)


BIG = 2**63 - 1


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        (f"{2**53}-{2**53}", f"{2**53}-{2**53 + 1}"),
        (f"{2**53 + 1}-999999999999999", f"{2**53 + 1}-1000000000000000"),
        (f"9999999999999999-{10**15 - 1}", f"9999999999999999-{10**15}"),
        (f"{BIG - 1}-9", f"{BIG - 1}-10"),
        (f"{BIG}-{BIG - 1}", f"{BIG}-{BIG}"),
        (f"9007199254740993-{BIG}", "9007199254740994-0"),
        (f"9999999999999999-{BIG}", "10000000000000000-0"),
    ],
)
def test_counts_beyond_what_a_double_holds(tide, clock, expected):
    tide.client.set("tide:$clock", clock)
    assert tide.publish("news", "x") == expected
    assert tide.control("$clock") == expected


@pytest.mark.parametrize(
    "clock",
    [f"{BIG}-{BIG}", f"{2**64 - 1}-{2**64 - 1}", f"{BIG + 1}-0", "x", "", "1", "1-", "-1", "1-2-3",
     "1e9-1", "01-1", "1-01", " 1-1", "1" * 40 + "-1", "9-9\n"],
)
def test_an_evil_clock_gives_an_error_and_no_repeat(tide, clock):
    tide.client.set("tide:$clock", clock)
    before = tide.state()
    with refuses("clock_exhausted"):
        tide.publish("news", "x")
    assert tide.state() == before


def test_an_evil_stream_gives_an_error_and_no_half_state(tide):
    tide.client.xadd("tide:$log:{news}", {"a": "b"}, id=f"{2**64 - 1}-{2**64 - 1}")
    before = tide.state()
    with refuses("clock_exhausted"):
        tide.publish("news", "x")
    assert tide.state() == before


@pytest.mark.parametrize("key", ["$clock", "$born", "$config", "$log:{news}", "$idem:{news}:k"])
def test_a_key_of_the_wrong_type_is_an_error_and_no_half_state(tide, key):
    tide.client.delete("tide:" + key)
    tide.client.sadd("tide:" + key, "x")
    before = tide.state()
    with pytest.raises(redis.ResponseError, match="^WRONGTYPE"):
        tide.publish("news", "x", idempotency="k")
    assert tide.state() == before


def test_the_same_idempotency_key_delivers_once(tide, heard):
    first = tide.publish("news", "x", event="e", key="k", idempotency="once")
    state = tide.state()
    assert tide.publish("news", "x", event="e", key="k", idempotency="once") == first
    assert tide.state() == state
    assert len(heard(1)) == 1
    assert 290000 < tide.client.pttl("tide:$idem:{news}:once") <= 300000


@pytest.mark.parametrize(
    "other",
    [("y", {"event": "e", "key": "k"}), ("x", {"event": "k", "key": "e"}), ("x", {"event": "e"}),
     ("x", {}), ("x", {"event": "ek"}), ("kx", {"event": "e"}), ("ekx", {})],
)
def test_an_idempotency_key_of_another_message_is_a_conflict(tide, other):
    payload, options = other
    tide.publish("news", "x", event="e", key="k", idempotency="once")
    before = tide.state()
    with refuses("idempotency_conflict"):
        tide.publish("news", payload, idempotency="once", **options)
    assert tide.state() == before


def test_idempotency_keys_belong_to_their_channel(tide):
    assert tide.publish("a", "x", idempotency="k") != tide.publish("b", "y", idempotency="k")


def test_everything_published_is_at_or_below_a_probe_and_all_later_above(tide, heard):
    for i in range(200):
        before = tide.publish("news", "x")
        position = tide.probe(f"t{i}")
        after = tide.publish("news", "x")
        assert parts(before) <= parts(position) < parts(after)
    assert ("tide:$probe:x", f"{position} t199".encode()) in heard(600)


def test_a_probe_holds_the_clock_against_a_step_back(tide):
    position = tide.probe()
    assert tide.control("$clock") == position
    assert parts(tide.control("$born")) <= parts(position)
    far = redis_ms(tide) + 3600_000
    tide.client.set("tide:$clock", f"{far}-3")
    assert tide.probe() == f"{far}-3"
    assert tide.publish("news", "x") == f"{far}-4"


def test_a_probe_needs_no_table_and_works_when_redis_is_full(tide):
    tide.client.delete("tide:$config")
    tide.client.config_set("maxmemory", 1)
    assert parts(tide.probe())


@pytest.mark.parametrize("key", ["tide:news", "tide:$probe", "tide:$probe:", "tide:$probe:a b", "x"])
def test_a_probe_refuses_other_keys(tide, key):
    with refuses("bad_arguments"):
        tide.call("probe", key, "t")


@pytest.mark.parametrize("args", [[], ["a", "b"], [""], ["a b"], ["a\n"], ["a" * 201]])
def test_a_probe_refuses_a_bad_token(tide, args):
    with refuses("bad_arguments"):
        tide.call("probe", "tide:$probe:x", *args)


@pytest.mark.parametrize("clock", ["x", f"{2**63}-0", f"0-{2**63}"])
def test_a_probe_never_tells_an_impossible_position(tide, clock):
    tide.client.set("tide:$clock", clock)
    if clock.startswith("0-"):
        assert parts(tide.probe())[1] == 0
        return
    with refuses("clock_exhausted"):
        tide.probe()


def test_a_full_redis_refuses_and_stays_whole(tide, heard):
    tide.publish("news", "x")
    heard(1)
    before = tide.state()
    tide.client.config_set("maxmemory", 1)
    with pytest.raises(redis.ResponseError, match="OOM"):
        tide.publish("news", "x")
    epoch = tide.lease("me")[0]
    with pytest.raises(redis.ResponseError, match="OOM"):
        tide.call("tick", "tide:news", epoch, "x")
    tide.client.config_set("maxmemory", 0)
    heard(0)
    tide.client.delete("tide:$lease", "tide:$epoch")
    assert tide.state() == before


def test_one_owner_has_the_lease_and_renews_it(tide):
    epoch, remaining, digest, version = tide.lease("a", 5000)
    assert epoch > 0 and remaining == 5000 and digest == b"h" and version == 1
    assert tide.lease("a", 6000)[:2] == [epoch, 6000]
    other, left, *_ = tide.lease("b", 5000)
    assert other == 0 and 5000 < left <= 6000
    assert tide.call("release", "tide:$lease", "b", epoch) == 0
    assert tide.call("release", "tide:$lease", "a", epoch + 1) == 0
    assert tide.call("release", "tide:$lease", "a", epoch) == 1
    assert tide.lease("b")[0] > epoch


def test_an_expired_lease_is_free_and_gets_a_new_epoch(tide):
    old = tide.lease("a", 10)[0]
    wait_until_gone(tide, "tide:$lease")
    new = tide.lease("b")[0]
    assert new > old
    with refuses("stale_epoch"):
        tide.call("tick", "tide:news", old, "x")
    assert tide.lease("a")[0] == 0


def test_an_epoch_is_not_given_twice_after_a_flush(tide):
    old = tide.lease("a")[0]
    tide.client.flushall()
    wait_a_millisecond(tide)
    tide.configure()
    assert tide.lease("b")[0] > old
    with refuses("stale_epoch"):
        tide.call("tick", "tide:news", old, "x")


def test_a_lease_that_was_tampered_with_does_not_lock_everybody_out(tide):
    tide.client.set("tide:$lease", "1 a")
    assert tide.lease("b")[0] > 1
    tide.client.set("tide:$lease", "rubbish", px=10000)
    assert tide.lease("b")[0] > 1
    tide.client.set("tide:$epoch", "rubbish")
    tide.client.delete("tide:$lease")
    assert tide.lease("b")[0] > 1


def test_a_lease_tells_that_the_table_is_gone(tide):
    tide.client.delete("tide:$config")
    assert tide.lease("a")[2] == b""


@pytest.mark.parametrize("args", [[], ["a"], ["a", "0"], ["a", "-1"], ["a", "x"], ["", "9"], ["a b", "9"]])
def test_a_lease_refuses_bad_arguments(tide, args):
    with refuses("bad_arguments"):
        tide.call("lease", "tide:$lease", *args)


def test_a_tick_is_published_like_anything_else(tide, heard):
    epoch = tide.lease("a")[0]
    an_id = tide.call("tick", "tide:news", epoch, "tick")
    assert tide.entries("news")[0][0] == an_id
    assert heard(1)[0][1].endswith(b"\ntick")
    with refuses("payload_too_big"):
        tide.call("tick", "tide:tiny:x", epoch, "a" * 9)


@pytest.mark.parametrize("epoch", ["0", "", "x", "-1", "1e3", "1.0"])
def test_a_tick_of_another_epoch_is_refused(tide, epoch):
    tide.lease("a")
    before = tide.state()
    with refuses("stale_epoch"):
        tide.call("tick", "tide:news", epoch, "x")
    tide.client.delete("tide:$lease")
    del before[b"tide:$lease"]
    with refuses("stale_epoch"):
        tide.call("tick", "tide:news", epoch, "x")
    assert tide.state() == before


@pytest.fixture(scope="module")
def guarded(server, tmp_path_factory):
    del server
    copy = tmp_path_factory.mktemp("acl") / "users.acl"
    copy.write_text(ACL_FILE.read_text())
    with RedisServer([f"aclfile {copy}"]) as running:
        running.load_library()
        yield running


def login(server, name):
    return server.connect(username=name, password=f"{name.upper()}_PASSWORD")


def test_the_users_file_gives_each_what_it_needs_and_no_more(guarded):
    with login(guarded, "broker") as client:
        broker = Tide(client)
        client.execute_command("FUNCTION", "LOAD", "REPLACE", LIBRARY.read_bytes())
        assert broker.call("check", "tide:$check") == []
        broker.configure()
        epoch = broker.lease("b")[0]
        broker.call("tick", "tide:news", epoch, "x")
        broker.call("release", "tide:$lease", "b", epoch)
        for command in (["FLUSHALL"], ["KEYS", "*"], ["CONFIG", "GET", "*"], ["FUNCTION", "FLUSH"],
                        ["SET", "other", "1"], ["ACL", "LIST"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)
    with login(guarded, "gateway") as client:
        gateway = Tide(client)
        assert gateway.call("check", "tide:$check", "publisher") == []
        gateway.publish("news", "x", idempotency="k")
        gateway.publish("live:x", "x")
        gateway.probe()
        client.execute_command("CLIENT", "SETNAME", "gateway")
        client.ping()
        with client.pubsub() as pubsub:
            pubsub.subscribe("tide:news")
            assert pubsub.get_message(timeout=5)["type"] == "subscribe"
            pubsub.unsubscribe("tide:news")
        for command in (["PSUBSCRIBE", "tide:*"], ["FUNCTION", "LOAD", "x"], ["DEL", "tide:$config"]):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command)
    with login(guarded, "publisher") as client:
        publisher = Tide(client)
        publisher.publish("news", "x", idempotency="p")
        client.publish("tide:news", "plain")
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.execute_command("SUBSCRIBE", "tide:news")
        with pytest.raises(redis.exceptions.NoPermissionError):
            publisher.configure({"ns:default": TEXT}, digest="evil")


COMMANDS = ["time", "get", "set", "hmget", "xadd", "xinfo|stream", "pexpire", "publish"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_right_is_named_and_leaves_no_half_state(server, tide, heard, command):
    tide.publish("news", "x")
    heard(1)
    words = " ".join(f"+{word}" for word in COMMANDS if word != command)
    tide.client.execute_command(
        "ACL", "SETUSER", "poor", "reset", "on", ">p", "~tide:*", "&tide:*", "+fcall", *words.split()
    )
    before = tide.state()
    with server.connect(username="poor", password="p") as client:
        poor = Tide(client)
        assert poor.call("check", "tide:$check", "publisher") == [command.encode()]
        for channel in ("news", "quiet"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                poor.publish(channel, "y", idempotency="k")
    assert tide.state() == before
    heard(0)


READS_ALL = "&tide:* %R~tide:* ~tide:news ~tide:quiet %W~tide:$clock %W~tide:$log*"


def test_a_user_who_may_not_begin_a_history_leaves_no_half_state(server, tide):
    tide.publish("news", "x")
    tide.client.delete("tide:$clock")
    tide.client.execute_command(
        "ACL", "SETUSER", "poor", "reset", "on", ">p", *READS_ALL.split(), "+@all"
    )
    before = tide.state()
    with server.connect(username="poor", password="p") as client:
        with pytest.raises(redis.exceptions.NoPermissionError):
            Tide(client).publish("quiet", "y")
    assert tide.state() == before


@pytest.mark.parametrize(
    "rights", ["~tide:*", "~tide:* &tide:other", "&tide:* ~tide:$log*", "&tide:*", READS_ALL]
)
def test_missing_keys_and_channels_leave_no_half_state(server, tide, heard, rights):
    tide.publish("news", "x")
    heard(1)
    tide.client.execute_command(
        "ACL", "SETUSER", "poor", "reset", "on", ">p", *rights.split(), "+@all"
    )
    before = tide.state()
    with server.connect(username="poor", password="p") as client:
        for call in (lambda api: api.publish("news", "y", idempotency="k"), lambda api: api.probe()):
            with pytest.raises(redis.exceptions.NoPermissionError):
                call(Tide(client))
    assert tide.state() == before
    heard(0)


def test_the_check_names_each_missing_command_of_a_broker(server, tide):
    tide.client.execute_command(
        "ACL", "SETUSER", "poor", "reset", "on", ">p", "~tide:*", "&tide:*", "+@all",
        "-xadd", "-hset", "-pttl",
    )
    with server.connect(username="poor", password="p") as client:
        assert Tide(client).call("check", "tide:$check") == [b"xadd", b"hset", b"pttl"]
    assert tide.call("check", "tide:$check") == []
    with refuses("bad_arguments"):
        tide.call("check", "tide:$check", "king")
    with refuses("bad_arguments"):
        tide.call("check", "tide:news")
