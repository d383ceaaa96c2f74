/*
 * Replays a trace: feeds its inputs to a pool, at their times, and compares the pool with the fingerprints in the trace.
 *
 *     replay FILE [OUT]      FILE begins with a new pool; docs/traces.md has the format. Records the replay as OUT
 *
 * Payloads and waiters are not in traces, and no decision depends on them or on causes: they are numbers here. A connection
 * is its number alone; a trace of random tests, which has numbers with slots that were never theirs, replays otherwise.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cenote.h"

static void stop(const char *what, const char *detail) {
    fprintf(stderr, "%s: %s\n", what, detail);
    exit(1);
}

static void must(cenote_status status) {
    char text[256] = "";
    if (status == CENOTE_STATUS_OK) return;
    cenote_last_error(text, sizeof text, NULL);
    stop("libcenote", text);
}

/* A value in a document. */
typedef struct {
    uint8_t type; /* 0 is none */
    const uint8_t *at;
} value;

static uint64_t number_at(const uint8_t *at, int bytes) {
    uint64_t number = 0;
    while (bytes-- > 0) number = number << 8 | at[bytes];
    return number;
}

/* How long a value of this type is, of which `left` bytes are left in the document. */
static size_t length_of(uint8_t type, const uint8_t *at, size_t left) {
    size_t length = left + 1;
    switch (type) {
    case 0x01: case 0x09: case 0x12: length = 8; break;
    case 0x02: if (left >= 4) length = 4 + (size_t)number_at(at, 4); break;
    case 0x03: case 0x04: if (left >= 4) length = (size_t)number_at(at, 4); break;
    case 0x07: length = 12; break;
    case 0x08: length = 1; break;
    case 0x10: length = 4; break;
    default: break;
    }
    if (length > left) stop("the trace", "a value that cannot be read");
    return length;
}

/* The value of a key, or with a null key the first one. */
static value find(const uint8_t *document, const char *wanted) {
    const uint8_t *at = document + 4, *end = document + number_at(document, 4) - 1;
    value found = {0, NULL};
    while (at < end) {
        const uint8_t *key = at + 1, *zero = memchr(key, 0, (size_t)(end - key));
        if (zero == NULL) stop("the trace", "a key without an end");
        size_t length = length_of(*at, zero + 1, (size_t)(end - zero - 1));
        if (wanted == NULL || strcmp((const char *)key, wanted) == 0) {
            found.type = *at, found.at = wanted == NULL ? key : zero + 1;
            break;
        }
        at = zero + 1 + length;
    }
    return found;
}

/* A number of 32 or 64 bits, or what is given where there is none. */
static uint64_t number(const uint8_t *document, const char *key, uint64_t otherwise) {
    value it = find(document, key);
    if (it.type == 0x10) return (uint64_t)(int64_t)(int32_t)number_at(it.at, 4);
    return it.type == 0x12 ? number_at(it.at, 8) : otherwise;
}

static int has(const uint8_t *document, const char *key) { return find(document, key).type != 0; }

static int64_t flag(const uint8_t *document, const char *key) {
    value it = find(document, key);
    return it.type == 0x08 ? *it.at : CENOTE_NOT_SET;
}

static cenote_options options_of(const uint8_t *document) {
    cenote_options options = CENOTE_OPTIONS_INIT;
    const uint64_t unset = (uint64_t)CENOTE_NOT_SET;
    value order = find(document, "reuseOrder");
    options.max_pool_size = (int64_t)number(document, "maxPoolSize", unset);
    options.min_pool_size = (int64_t)number(document, "minPoolSize", unset);
    options.max_idle_time = (int64_t)number(document, "maxIdleTime", unset);
    options.max_connecting = (int64_t)number(document, "maxConnecting", unset);
    options.wait_queue_timeout = (int64_t)number(document, "waitQueueTimeout", unset);
    options.load_balanced = flag(document, "loadBalanced");
    options.pause_after_failure =
        flag(document, "maintenance") == 0 ? CENOTE_NO_MAINTENANCE : (int64_t)number(document, "pauseAfterFailure", unset);
    if (order.type == 0x02) options.reuse_order = strcmp((const char *)order.at + 4, "leastRecentlyUsed") == 0;
    options.max_lifetime = (int64_t)number(document, "maxLifetime", unset);
    options.jitter_seed = (int64_t)number(document, "jitterSeed", unset);
    options.leak_detection_threshold = (int64_t)number(document, "heldTooLong", unset);
    options.max_wait_queue_size = (int64_t)number(document, "maxWaitQueueSize", unset);
    options.codel_target = (int64_t)number(document, "codelTarget", unset);
    options.codel_interval = (int64_t)number(document, "codelInterval", unset);
    options.overload_backoff = (int64_t)number(document, "overloadBackoff", unset);
    options.adaptive_connecting = flag(document, "adaptiveConnecting");
    options.predictive_min_pool_size = flag(document, "predictiveMinPoolSize");
    options.unanswered_threshold = (int64_t)number(document, "unanswered", unset);
    options.experimental_pending_response = flag(document, "experimentalPendingResponse");
    return options;
}

static uint32_t purpose_of(const uint8_t *document) {
    value it = find(document, "p");
    if (it.type != 0x02) return CENOTE_PURPOSE_OTHER;
    return strcmp((const char *)it.at + 4, "cursor") == 0 ? CENOTE_PURPOSE_CURSOR : CENOTE_PURPOSE_TRANSACTION;
}

/* Feeds one input. `id` is the number of its first key after the time. */
static cenote_status feed(cenote_pool *pool, const uint8_t *input, const cenote_cause *cause, const cenote_cause *overload) {
    uint64_t now = number(input, "t", 0), id;
    const uint8_t *service = find(input, "v").at; /* null if there is none */
#define IS(key) (id = number(input, key, UINT64_MAX), has(input, key))
    if (IS("out")) return cenote_check_out(pool, now, id, (uintptr_t)id, number(input, "d", CENOTE_NEVER), purpose_of(input));
    if (IS("cancel")) return cenote_cancel(pool, now, id);
    if (IS("in") && has(input, "r"))
        return cenote_check_in_pending_response(pool, now, id, 0, (int32_t)number(input, "r", 0), cause);
    if (IS("in") && has(input, "e")) return cenote_check_in_errored(pool, now, id, 0, cause);
    if (IS("in")) return cenote_check_in(pool, now, id, 0);
    if (IS("use")) return cenote_repurpose(pool, now, id, purpose_of(input));
    if (IS("hello") && has(input, "seen")) return cenote_handshaken_late(pool, now, id, service, number(input, "seen", 0));
    if (IS("hello")) return cenote_handshaken(pool, now, id, service);
    if (IS("up")) return cenote_established(pool, now, id, 0);
    if (IS("fail")) return cenote_establish_failed(pool, now, id, flag(input, "overloaded") == 1 ? overload : cause);
    if (IS("gone")) return cenote_idle_closed_by_peer(pool, now, id, cause);
    if (IS("drained")) return cenote_drained(pool, now, id, 0);
    if (IS("drainFail")) return cenote_drain_failed(pool, now, id, cause);
    if (IS("drainRead")) return cenote_drain_progress(pool, now, id);
    if (has(input, "ready")) return cenote_ready(pool, now);
    if (has(input, "close")) return cenote_close(pool, now);
    if (has(input, "timer")) return cenote_timer(pool, now);
    if (has(input, "fork")) return cenote_reset_after_fork(pool, now);
    if (has(input, "release")) return cenote_release_idle(pool, now);
    if (has(input, "retire")) return cenote_retire_connections(pool, now);
    if (has(input, "clear")) return cenote_clear(pool, now, cause, flag(input, "clear") == 1, service);
    if (has(input, "set")) {
        cenote_options options = options_of(find(input, "set").at);
        return cenote_set_options(pool, now, &options);
    }
    stop("the trace", "an input that this program does not know");
    return CENOTE_STATUS_OK;
}

static uint8_t *read_file(const char *name, size_t *length) {
    size_t room = 1 << 16;
    uint8_t *bytes = malloc(room);
    FILE *file = fopen(name, "rb");
    if (file == NULL || bytes == NULL) stop(name, "cannot be read");
    for (*length = 0; !feof(file) && !ferror(file);) {
        *length += fread(bytes + *length, 1, room - *length, file);
        if (*length == room && (bytes = realloc(bytes, room *= 2)) == NULL) stop(name, "is too large");
    }
    if (ferror(file)) stop(name, "cannot be read");
    fclose(file);
    return bytes;
}

/* Appends what was recorded so far to the file. */
static void write_trace(cenote_pool *pool, FILE *out) {
    uint8_t bytes[4096];
    size_t length;
    do {
        must(cenote_trace_read(pool, bytes, sizeof bytes, &length));
        if (fwrite(bytes, 1, length, out) != length) stop("the recording", "cannot be written");
    } while (length > 0);
}

int main(int count, char **arguments) {
    if (count != 2 && count != 3) return fputs("usage: replay FILE [OUT]\n", stderr), 2;
    FILE *out = count == 3 ? fopen(arguments[2], "wb") : NULL;
    if (count == 3 && out == NULL) stop(arguments[2], "cannot be written");
    cenote_pool *pool = NULL;
    cenote_cause *cause, *overload;
    cenote_cause_options of_all = CENOTE_CAUSE_OPTIONS_INIT, of_overload = CENOTE_CAUSE_OPTIONS_INIT;
    of_overload.stage = CENOTE_CAUSE_STAGE_TCP;
    must(cenote_cause_new(&of_all, &cause));
    must(cenote_cause_new(&of_overload, &overload));
    size_t length, at = 0, inputs = 0, actions = 0, fingerprints = 0, refused = 0;
    uint8_t *trace = read_file(arguments[1], &length);
    while (at < length) {
        const uint8_t *document = trace + at;
        size_t size = length - at < 5 ? 0 : (size_t)number_at(document, 4);
        if (size < 5 || size > length - at || document[size - 1] != 0) stop("the trace", "a document that is cut off");
        value first = find(document, NULL);
        const char *type = first.type == 0 ? "" : (const char *)first.at;
        at += size;
        if (strcmp(type, "format") == 0) {
            value options = find(document, "options");
            if (has(document, "state")) stop("the trace", "it begins with a pool that is in use");
            if (pool != NULL || options.type != 0x03) stop("the trace", "a header that cannot be read");
            cenote_options own = options_of(options.at);
            must(cenote_pool_new("replay:1", &own, number(document, "t", 0), &pool));
            if (out != NULL) must(cenote_trace_start(pool, 1));
        } else if (pool == NULL) {
            stop("the trace", "it does not begin with a header");
        } else if (strcmp(type, "t") == 0) {
            cenote_status status = feed(pool, document, cause, overload);
            int was_refused = status == CENOTE_STATUS_MISUSE;
            if (!was_refused) must(status);
            if (was_refused != has(document, "refused")) stop("the replay differs", "an input is refused in one of the two");
            inputs++, refused += (size_t)was_refused;
        } else if (strcmp(type, "fp") == 0) {
            uint64_t fingerprint;
            must(cenote_fingerprint(pool, &fingerprint));
            if (fingerprint != number(document, "fp", 0)) stop("the replay differs", "the pool is in another state");
            fingerprints++;
        } else if (strcmp(type, "lost") == 0) {
            stop("the trace", "inputs were lost");
        }
        if (out != NULL) write_trace(pool, out);
        for (cenote_action action = CENOTE_ACTION_INIT; pool != NULL; actions++) {
            must(cenote_next_action(pool, &action));
            if (action.kind == CENOTE_ACTION_KIND_NONE) break;
        }
    }
    if (out != NULL && pool != NULL) {
        must(cenote_trace_stop(pool));
        write_trace(pool, out);
        if (fclose(out) != 0) stop(arguments[2], "cannot be written");
    }
    printf("%u inputs, %u of them refused, and %u actions; %u fingerprints agree\n", (unsigned)inputs, (unsigned)refused,
           (unsigned)actions, (unsigned)fingerprints);
    free(trace);
    must(cenote_cause_release(cause));
    must(cenote_cause_release(overload));
    if (pool != NULL) must(cenote_pool_free(pool));
    return fingerprints > 0 ? 0 : 1;
}
