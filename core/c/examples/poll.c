/*
 * A driver on poll(2), without threads: callers share a few connections to a MongoDB server, and each sends pings.
 *
 *     poll HOST PORT [CALLERS [PINGS]]       HOST is an IPv4 address; without TLS and authentication
 *
 * It has what a driver owes the pool: one answer for each establishment, SDAM before the pool, actions in order, timers. The
 * server's monitor is replaced by a timer, which marks the pool ready half a second after it was cleared.
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cenote.h"

#define SECOND UINT64_C(1000000000)
#define LIMIT (10 * SECOND) /* connectTimeoutMS and socketTimeoutMS */
enum { MAX_SOCKETS = 8, REPLY_MAX = 4096, MAX_FAILURES = 20 };

typedef enum { FREE, CONNECTING, HELLO, IDLE, PING } state;

typedef struct {
    state state;
    int fd;
    uint64_t connection; /* CMAP's id, which the pool calls it by */
    uintptr_t caller;
    uint64_t deadline;
    size_t length;
    uint8_t reply[REPLY_MAX];
} peer;

static cenote_pool *pool;
static struct sockaddr_in server;
static peer peers[MAX_SOCKETS];
static struct { unsigned pings, waits; } *callers;
static uint64_t next_request = 1, ready_at = CENOTE_NEVER;
static size_t caller_count = 20;
static unsigned requests = 0, failures = 0, events = 0, pongs = 0;

static uint64_t now(void) {
    struct timespec it;
    clock_gettime(CLOCK_MONOTONIC, &it);
    return (uint64_t)it.tv_sec * SECOND + (uint64_t)it.tv_nsec;
}

/* Every call of the library can fail; in this program each failure is a bug of it. */
static void must(cenote_status status) {
    char text[256] = "";
    if (status == CENOTE_STATUS_OK) return;
    cenote_last_error(text, sizeof text, NULL);
    exit((fprintf(stderr, "libcenote, status %u: %s\n", (unsigned)status, text), 1));
}

static void check_out(uintptr_t caller) {
    must(cenote_check_out(pool, now(), next_request++, caller, CENOTE_NEVER, CENOTE_PURPOSE_OTHER));
}

/* OP_MSG with the document { COMMAND: 1, $db: "admin" }. */
static int send_command(peer *to, const char *command) {
    uint8_t message[96] = {0};
    size_t name = strlen(command) + 1, end = 21;
    message[12] = 0xdd, message[13] = 0x07; /* opcode 2013; no flags; a section of kind 0 */
    message[end + 4] = 0x10, message[end + 5 + name] = 1; /* an int32 */
    memcpy(message + end + 5, command, name);
    memcpy(message + end + 9 + name, "\x02$db\0\x06\0\0\0admin", 15); /* a string of six bytes */
    size_t document = 4 + 1 + name + 4 + 15 + 1;
    message[end] = (uint8_t)document, message[0] = (uint8_t)(end + document), message[4] = (uint8_t)++requests;
    to->length = 0, to->deadline = now() + LIMIT;
    /* So short a message always fits into the socket's buffer: the last reply has been read. */
    return send(to->fd, message, end + document, MSG_NOSIGNAL) == (ssize_t)(end + document) ? 0 : -1;
}

/* Whether a reply has { ok: 1.0 } in it. A driver parses the document. */
static int is_ok(const uint8_t *reply, size_t length) {
    for (size_t at = 25; at + 12 <= length; at++)
        if (memcmp(reply + at, "\x01ok\0\0\0\0\0\0\0\xf0\x3f", 12) == 0) return 1;
    return 0;
}

/* SDAM first: what the failure means for the pool. Then the pool is told of the connection. */
static void fail(peer *of, uint32_t kind, const char *text) {
    cenote_cause_options options = CENOTE_CAUSE_OPTIONS_INIT; /* at the stage of an operation */
    if (of->state == CONNECTING) options.stage = CENOTE_CAUSE_STAGE_TCP;
    if (of->state == HELLO) options.stage = CENOTE_CAUSE_STAGE_HELLO;
    options.kind = kind, options.after = LIMIT, options.text = text;
    cenote_cause *cause;
    must(cenote_cause_new(&options, &cause));
    cenote_verdict_info verdict = CENOTE_VERDICT_INIT;
    if (of->state != IDLE) must(cenote_verdict(pool, of->connection, cause, NULL, 0, &verdict));
    if (verdict.pool != CENOTE_POOL_VERDICT_KEEP) must(cenote_clear(pool, now(), cause, 0, NULL));
    if (of->state == IDLE) {
        must(cenote_idle_closed_by_peer(pool, now(), of->connection, cause));
    } else if (of->state == PING) {
        must(cenote_check_in_errored(pool, now(), of->connection, (uintptr_t)of, cause));
        check_out(of->caller);
    } else {
        must(cenote_establish_failed(pool, now(), of->connection, cause));
        close(of->fd), of->state = FREE;
    }
    must(cenote_cause_release(cause));
}

static void start(const cenote_action *action) {
    peer *peer = peers;
    while (peer->state != FREE) peer++; /* there are more of them than the pool may have */
    peer->connection = action->connection, peer->state = CONNECTING, peer->deadline = now() + LIMIT;
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (peer->fd < 0 || fcntl(peer->fd, F_SETFL, O_NONBLOCK) < 0) fail(peer, CENOTE_CAUSE_KIND_LOCAL, strerror(errno));
    else if (connect(peer->fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS)
        fail(peer, CENOTE_CAUSE_KIND_NETWORK, strerror(errno));
}

/* A caller has its connection, or an error. */
static void deliver(const cenote_action *action) {
    if (action->error == CENOTE_CHECK_OUT_ERROR_NONE) {
        peer *peer = (void *)action->payload;
        peer->state = PING, peer->caller = action->waiter;
        if (send_command(peer, "ping") < 0) fail(peer, CENOTE_CAUSE_KIND_NETWORK, strerror(errno));
        return;
    }
    char text[256];
    cenote_action_text(pool, CENOTE_TEXT_KIND_EXPLANATION, text, sizeof text, NULL);
    fprintf(stderr, "caller %u: %s\n", (unsigned)action->waiter, text);
    if (!action->is_retryable || ++failures > MAX_FAILURES) exit(1);
    callers[action->waiter].waits = 1, ready_at = now() + SECOND / 2;
}

static void perform(const cenote_action *action) {
    peer *peer = (void *)action->payload;
    switch (action->kind) {
    case CENOTE_ACTION_KIND_START_ESTABLISH: start(action); break;
    case CENOTE_ACTION_KIND_DELIVER: deliver(action); break;
    case CENOTE_ACTION_KIND_CLOSE_SOCKET: close(peer->fd), peer->state = FREE; break;
    case CENOTE_ACTION_KIND_EMIT_EVENT:
        events++;
        if (action->event == CENOTE_EVENT_KIND_POOL_CLEARED) ready_at = now() + SECOND / 2;
        break;
    case CENOTE_ACTION_KIND_ABORT_ESTABLISH:
        for (peer = peers; peer->state == FREE || peer->connection != action->connection;) peer++;
        close(peer->fd), peer->state = FREE;
        break;
    default: break; /* this program interrupts nothing, and the options have no leak detection and no late replies */
    }
}

/* A good reply has arrived whole. */
static void receive(peer *from) {
    state before = from->state;
    from->state = IDLE;
    if (before == HELLO) {
        must(cenote_established(pool, now(), from->connection, (uintptr_t)from));
        return;
    }
    must(cenote_check_in(pool, now(), from->connection, (uintptr_t)from));
    pongs++;
    if (--callers[from->caller].pings > 0) check_out(from->caller);
}

static void on_ready(peer *peer) {
    if (peer->state == CONNECTING) {
        /* If it did not connect, sending says why. */
        if (send_command(peer, "hello") < 0) fail(peer, CENOTE_CAUSE_KIND_NETWORK, strerror(errno));
        else peer->state = HELLO;
        return;
    }
    ssize_t count = recv(peer->fd, peer->reply + peer->length, REPLY_MAX - peer->length, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0 || peer->state == IDLE) {
        fail(peer, CENOTE_CAUSE_KIND_NETWORK, count < 0 ? strerror(errno) : "closed by the peer");
        return;
    }
    peer->length += (size_t)count;
    const uint8_t *begin = peer->reply; /* with the length, whose upper half is 0 for so short a reply */
    size_t length = peer->length < 4 ? REPLY_MAX : begin[0] | (size_t)begin[1] << 8;
    if (length > REPLY_MAX || peer->length > length || (peer->length == length && !is_ok(begin, length)))
        fail(peer, CENOTE_CAUSE_KIND_PROTOCOL, "no good reply to hello or ping");
    else if (peer->length == length) receive(peer);
}

static void perform_all(void) {
    cenote_action action = CENOTE_ACTION_INIT;
    for (;;) {
        must(cenote_next_action(pool, &action));
        if (action.kind == CENOTE_ACTION_KIND_NONE) return;
        perform(&action);
    }
}

static int is_awaited(const peer *peer) { return peer->state != FREE && peer->state != IDLE; }

/* Until one is ready, or something is due. */
static void wait_for_sockets(void) {
    struct pollfd polled[MAX_SOCKETS];
    uint64_t next, time = now();
    must(cenote_next_deadline(pool, &next, NULL));
    if (ready_at < next) next = ready_at;
    for (int i = 0; i < MAX_SOCKETS; i++) {
        polled[i].fd = peers[i].state == FREE ? -1 : peers[i].fd;
        polled[i].events = peers[i].state == CONNECTING ? POLLOUT : POLLIN;
        if (is_awaited(&peers[i]) && peers[i].deadline < next) next = peers[i].deadline;
    }
    int wait = next == CENOTE_NEVER ? -1 : next <= time ? 0 : (int)((next - time) / 1000000 + 1);
    if (poll(polled, MAX_SOCKETS, wait) < 0) return; /* a signal: the next round waits again */
    time = now();
    for (int i = 0; i < MAX_SOCKETS; i++) {
        if (polled[i].fd >= 0 && polled[i].revents != 0) on_ready(&peers[i]);
        else if (is_awaited(&peers[i]) && peers[i].deadline <= time) fail(&peers[i], CENOTE_CAUSE_KIND_TIMEOUT, NULL);
    }
    if (ready_at > time) return;
    ready_at = CENOTE_NEVER, must(cenote_ready(pool, time));
    for (size_t caller = 0; caller < caller_count; caller++)
        if (callers[caller].waits) callers[caller].waits = 0, check_out(caller);
}

int main(int count, char **arguments) {
    unsigned pings = count > 4 ? (unsigned)atoi(arguments[4]) : 50;
    if (count > 3) caller_count = (size_t)atoi(arguments[3]);
    server.sin_family = AF_INET;
    if (count < 3 || inet_pton(AF_INET, arguments[1], &server.sin_addr) != 1 || caller_count == 0 || pings == 0)
        return fputs("usage: poll HOST PORT [CALLERS [PINGS]]\n", stderr), 2;
    server.sin_port = htons((uint16_t)atoi(arguments[2]));
    char address[64];
    snprintf(address, sizeof address, "%.40s:%.5s", arguments[1], arguments[2]);
    cenote_options options = CENOTE_OPTIONS_INIT;
    options.max_pool_size = MAX_SOCKETS / 2; /* sockets of connections that are closing are still there */
    must(cenote_pool_new(address, &options, now(), &pool));
    must(cenote_ready(pool, now()));
    callers = calloc(caller_count, sizeof *callers);
    for (size_t caller = 0; caller < caller_count; caller++) callers[caller].pings = pings, check_out(caller);
    while (pongs < caller_count * pings) {
        perform_all(), wait_for_sockets();
        must(cenote_timer(pool, now()));
    }
    must(cenote_close(pool, now()));
    perform_all();
    cenote_snapshot_info left = CENOTE_SNAPSHOT_INFO_INIT;
    must(cenote_snapshot(pool, &left));
    printf("%u pings on %u connections, %u events; %u connections left\n", pongs, (unsigned)left.connections_created, events,
           (unsigned)left.total);
    must(cenote_pool_free(pool));
    free(callers);
    return left.total == 0 ? 0 : 1;
}
