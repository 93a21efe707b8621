"""Very many channels with one subscriber each, and what each of them takes in memory."""

import time

import meters
from stand import Clients, StandError, wait_until

EACH = 64           # channels of a connection: the default limit of one request
RING_MESSAGES = 4   # the least that can be set, so that the rings fill soon
MESSAGES = 6        # published to each channel: more than its ring keeps
BATCH = 5_000       # published at once, and awaited; far below Redis' output limit
CONNECTS_A_SECOND = 500
PREFIX = "c"
PAYLOAD_LEN = 100
SETTLE_SECONDS = 1.5
SECONDS = 60


def measure(stand, channel_count, sizes):
    settings = f"namespaces:\n  default:\n    ring:\n      messages: {RING_MESSAGES}\n"
    server = stand.start_gateway(settings)
    connection_count = channel_count // EACH
    channel_count = connection_count * EACH
    clients = Clients(stand, connection_count, [
        "--server", server.address, "--path", "/sse", "--rate", str(CONNECTS_A_SECOND),
        "--channels", str(EACH), "--channel", PREFIX])
    idle = meters.rss_bytes(server.worker)

    def bytes_each():
        time.sleep(SETTLE_SECONDS)
        return (meters.rss_bytes(server.worker) - idle) / channel_count

    before = stand.redis.subscribed_channels()
    opened = clients.open(connection_count, SECONDS)
    if opened["open"] != connection_count:
        raise StandError(f"only {opened['open']} of {connection_count} connections were opened")
    wait_until(lambda: stand.redis.subscribed_channels() >= before + channel_count, SECONDS,
               f"{channel_count} channels subscribed in Redis")
    figures = {"channels": channel_count, "connections": connection_count,
               "ring_messages": RING_MESSAGES, "subscribed_bytes": bytes_each()}
    for number in range(1, MESSAGES + 1):
        publish_to_all(stand, clients, channel_count, number)
        if number == 1:
            figures["one_message_bytes"] = bytes_each()
        if number == RING_MESSAGES:
            figures["ring_bytes"] = bytes_each()
    figures["full_bytes"] = bytes_each()
    report = clients.report()
    clients.stop(stand)
    server.process.must_live()
    stand.stop(server.process)
    return figures | {"dropped": report["dropped"],
                      "wrong": abs(report["ticks"] - MESSAGES * channel_count),
                      "arithmetic": arithmetic(sizes, channel_count),
                      "bound_bytes": sum(arithmetic(sizes, channel_count).values())}


def publish_to_all(stand, clients, channel_count, number):
    """Message `number` to each channel, through Redis, and waits until all have arrived."""
    published = (number - 1) * channel_count
    for first in range(0, channel_count, BATCH):
        batch = range(first, min(first + BATCH, channel_count))
        stand.redis.call(*(("PUBLISH", f"tide:{PREFIX}{channel}", payload(channel, number))
                           for channel in batch))
        published += len(batch)
        wait_until(lambda: clients.report()["ticks"] >= published, SECONDS,
                   f"message {number} on channels up to {batch[-1]}")


def payload(channel, number):
    """Numbers rise on each channel and, since a connection's channels follow one another, on each
    connection."""
    text = f'{{"seq":{number << 32 | channel},"t":{time.time_ns()},"pad":"'
    return text + "." * (PAYLOAD_LEN - len(text) - 2) + '"}'


def chunk(length):
    """What malloc takes for it: its own word, and a multiple of 16."""
    return max(32, (length + 8 + 15) // 16 * 16)


def arithmetic(sizes, channel_count):
    """Bytes a channel by the settings: everything that exists once for each, and a full ring."""
    name_len = len(f"{PREFIX}{channel_count}") + 1
    frame_len = len("data: ") + PAYLOAD_LEN + len("\n\n")
    message = chunk(sizes["message"] + PAYLOAD_LEN) + chunk(sizes["frame"] + frame_len)
    return {
        "channel": chunk(sizes["channel"] + name_len),
        "its place in the table": sizes["hash_bucket"],
        "list of one subscriber": chunk(2 * sizes["sweep_slot"]),
        "subscription": chunk(sizes["subscription"]),
        f"ring of {RING_MESSAGES} slots": chunk(RING_MESSAGES * sizes["ring_slot"]),
        f"{RING_MESSAGES} messages, framed": RING_MESSAGES * message,
        "a 64th of a connection": 512 // EACH,
    }


def print_figures(figures):
    print(f"\n{figures['channels']} channels with one subscriber each, on "
          f"{figures['connections']} connections; RSS bytes a channel:")
    for name, label in (("subscribed_bytes", "subscribed, nothing published"),
                        ("one_message_bytes", "one message each"),
                        ("ring_bytes", f"{RING_MESSAGES} messages each, the ring is full"),
                        ("full_bytes", f"{MESSAGES} messages each")):
        print(f"  {figures[name]:8.0f}  {label}")
    print("by the arithmetic of the settings:")
    for label, size in figures["arithmetic"].items():
        print(f"  {size:8}  {label}")
    print(f"  {figures['bound_bytes']:8}  together", flush=True)
