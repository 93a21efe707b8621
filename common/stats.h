/* stats: the counters of all workers, in memory that they share; one slot a worker, one writer a
 * slot. */
#pragma once

#include "common/buf.h"

#include <stdint.h>

/* One row a sample: kind, field, metric, labels, help. Rows of one metric stand together
 * (OpenMetrics demands it); the help of the first row counts. Counters' names get `_total` when
 * written. */
#define STATS_TABLE(X)                                                                             \
    X(GAUGE, connections_sse, "tidecast_connections", "transport=\"sse\"", "Open streams.")        \
    X(GAUGE, connections_ws, "tidecast_connections", "transport=\"websocket\"", "")                \
    X(GAUGE, sockets, "tidecast_sockets", "", "Accepted sockets, streams and requests alike.")     \
    X(GAUGE, channels, "tidecast_channels", "", "Channels with subscribers or lingering.")         \
    X(GAUGE, subscriptions, "tidecast_subscriptions", "", "Pairs of stream and channel.")          \
    X(GAUGE, ring_bytes, "tidecast_ring_bytes", "", "Memory of the messages in all rings.")        \
    X(GAUGE, ready, "tidecast_workers_ready", "", "Workers that can deliver what is published.")   \
    X(GAUGE, streams_blocked, "tidecast_streams_blocked", "",                                      \
      "Streams whose socket takes no bytes right now.")                                            \
    X(COUNTER, opened_sse, "tidecast_streams_opened", "transport=\"sse\"", "Streams opened.")      \
    X(COUNTER, opened_ws, "tidecast_streams_opened", "transport=\"websocket\"", "")                \
    X(COUNTER, closed_client, "tidecast_disconnects", "reason=\"client\"",                         \
      "Streams that ended, by reason.")                                                            \
    X(COUNTER, closed_error, "tidecast_disconnects", "reason=\"socket_error\"", "")                \
    X(COUNTER, closed_slow, "tidecast_disconnects", "reason=\"slow\"", "")                         \
    X(COUNTER, closed_shutdown, "tidecast_disconnects", "reason=\"shutdown\"", "")                 \
    X(COUNTER, closed_protocol, "tidecast_disconnects", "reason=\"protocol_error\"", "")           \
    X(COUNTER, closed_policy, "tidecast_disconnects", "reason=\"policy\"", "")                     \
    X(COUNTER, received_plain, "tidecast_messages_received", "form=\"plain\"",                     \
      "Messages that came from the backplane.")                                                    \
    X(COUNTER, received_enveloped, "tidecast_messages_received", "form=\"enveloped\"", "")         \
    X(COUNTER, dropped_version, "tidecast_messages_dropped", "reason=\"unknown_version\"",         \
      "Messages from the backplane that were not delivered.")                                      \
    X(COUNTER, dropped_malformed, "tidecast_messages_dropped", "reason=\"malformed\"", "")         \
    X(COUNTER, dropped_utf8, "tidecast_messages_dropped", "reason=\"not_utf8\"", "")               \
    X(COUNTER, dropped_too_big, "tidecast_messages_dropped", "reason=\"too_big\"", "")             \
    X(COUNTER, dropped_json, "tidecast_messages_dropped", "reason=\"not_json\"", "")               \
    X(COUNTER, dropped_stale, "tidecast_messages_dropped", "reason=\"stale_id\"", "")              \
    X(COUNTER, dropped_future, "tidecast_messages_dropped", "reason=\"future_id\"", "")            \
    X(COUNTER, dropped_unrouted, "tidecast_messages_dropped", "reason=\"no_channel\"", "")         \
    X(COUNTER, lingers_cut, "tidecast_lingers_cut", "",                                            \
      "Channels unsubscribed early because too many lingered.")                                    \
    X(COUNTER, backplane_pauses, "tidecast_backplane_pauses", "",                                  \
      "Times Redis was left waiting for the sweeps.")                                              \
    X(COUNTER, delivered_sse, "tidecast_messages_delivered", "transport=\"sse\"",                  \
      "Messages written to a client's socket.")                                                    \
    X(COUNTER, delivered_ws, "tidecast_messages_delivered", "transport=\"websocket\"", "")         \
    X(COUNTER, delivered_bytes, "tidecast_delivered_bytes", "", "Bytes written to streams.")       \
    X(COUNTER, heartbeats, "tidecast_heartbeats", "", "Heartbeats and pings sent.")                \
    X(COUNTER, ring_evicted, "tidecast_ring_evictions", "reason=\"total\"",                        \
      "Messages dropped from a ring before their time.")                                           \
    X(COUNTER, ring_dropped_bytes, "tidecast_ring_evictions", "reason=\"channel_bytes\"", "")      \
    X(COUNTER, refused_connections, "tidecast_refusals", "reason=\"max_connections\"",             \
      "Connections and requests refused, by the error they were told.")                            \
    X(COUNTER, refused_files, "tidecast_refusals", "reason=\"open_files\"", "")                    \
    X(COUNTER, refused_request, "tidecast_refusals", "reason=\"bad_request\"", "")                 \
    X(COUNTER, refused_channel, "tidecast_refusals", "reason=\"bad_channel\"", "")                 \
    X(COUNTER, refused_channels, "tidecast_refusals", "reason=\"too_many_channels\"", "")          \
    X(COUNTER, refused_method, "tidecast_refusals", "reason=\"method_not_allowed\"", "")           \
    X(COUNTER, refused_path, "tidecast_refusals", "reason=\"not_found\"", "")                      \
    X(COUNTER, refused_publish, "tidecast_refusals", "reason=\"publish_forbidden\"", "")           \
    X(COUNTER, refused_payload, "tidecast_refusals", "reason=\"bad_payload\"", "")                 \
    X(COUNTER, refused_handshake, "tidecast_refusals", "reason=\"bad_handshake\"", "")             \
    X(COUNTER, refused_draining, "tidecast_refusals", "reason=\"shutting_down\"", "")              \
    X(COUNTER, published, "tidecast_publishes", "result=\"ok\"", "Publish requests, by result.")   \
    X(COUNTER, publish_refused, "tidecast_publishes", "result=\"refused\"", "")                    \
    X(COUNTER, publish_unavailable, "tidecast_publishes", "result=\"unavailable\"", "")            \
    X(COUNTER, ws_frames, "tidecast_websocket_frames_received", "", "WebSocket frames read.")      \
    X(COUNTER, ws_commands, "tidecast_websocket_commands", "result=\"ok\"",                        \
      "Commands that WebSocket clients sent.")                                                     \
    X(COUNTER, ws_command_errors, "tidecast_websocket_commands", "result=\"error\"", "")           \
    X(GAUGE, redis_subscriber_up, "tidecast_redis_link_up", "link=\"subscriber\"",                 \
      "Workers whose link to Redis is ready.")                                                     \
    X(GAUGE, redis_command_up, "tidecast_redis_link_up", "link=\"command\"", "")                   \
    X(COUNTER, redis_subscriber_downs, "tidecast_redis_link_losses", "link=\"subscriber\"",        \
      "Times a ready link to Redis was lost.")                                                     \
    X(COUNTER, redis_command_downs, "tidecast_redis_link_losses", "link=\"command\"", "")          \
    X(COUNTER, probes_heard, "tidecast_redis_probes_heard", "",                                    \
      "Probe messages that came back through Redis.")                                              \
    X(COUNTER, worker_restarts, "tidecast_worker_restarts", "",                                    \
      "Workers started anew after a crash.")

enum counter {
#define X(kind, field, metric, labels, help) STAT_##field,
    STATS_TABLE(X)
#undef X
        STAT_COUNT
};

/* Once, before the fork: slots for so many writers, all zero, shared with every child. */
void stats_init(unsigned count);
/* The slot that this process writes. */
void stats_use(unsigned slot);

void stats_add(enum counter stat, uint64_t n);
void stats_sub(enum counter stat, uint64_t n);
void stats_set(enum counter stat, uint64_t value);

/* Its labels as they are written, such as `reason="slow"`. */
const char *stats_labels(enum counter stat);
/* Over all slots. */
uint64_t stats_sum(enum counter stat);
/* A process that died leaves no connections: its gauges go to 0, its counters stay. */
void stats_clear_gauges(unsigned slot);
/* All samples, summed over the slots, as OpenMetrics text 1.0. */
void stats_print(struct buf *out);
