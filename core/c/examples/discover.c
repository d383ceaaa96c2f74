/*
 * Discovers a deployment on poll(2), without threads: monitors each of its servers, keeps a pool for each, and asks for a primary
 * and for a secondary.
 *
 *     discover 'mongodb://HOST:PORT,.../?replicaSet=NAME' [SECONDS]       HOST is an IP address; without TLS
 *
 * It prints what becomes known of the servers, and which of them the two callers get; then it goes on watching for SECONDS, in which
 * another member may be elected. poll.c shows the other half of a driver: connections of a pool, and operations on them.
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cenote.h"

#define SECOND UINT64_C(1000000000)
enum { MAX_SERVERS = 50, MAX_SOCKETS = 2 * MAX_SERVERS, CHUNK = 16384, CALLERS = 2 };

typedef struct {
    uint64_t server; /* 0 if this place is free */
    cenote_pool *pool;
} member;

/* A monitoring socket. */
typedef struct {
    uint64_t server, socket; /* as the library calls it; 0 if this place is free */
    int fd, is_connecting;
} monitor;

static const char *const wanted[CALLERS] = {"a primary", "a secondary"};
static cenote_client *client;
static cenote_options options = CENOTE_OPTIONS_INIT;
static member members[MAX_SERVERS];
static monitor monitors[MAX_SOCKETS];
static int answers = 0, found = 0;

static uint64_t now(void) {
    struct timespec it;
    clock_gettime(CLOCK_MONOTONIC, &it);
    return (uint64_t)it.tv_sec * SECOND + (uint64_t)it.tv_nsec;
}

/* Every call of the library can fail; in this program each failure is a bug of it, or a bad argument. */
static void must(cenote_status status) {
    char text[512] = "";
    if (status == CENOTE_STATUS_OK) return;
    cenote_last_error(text, sizeof text, NULL);
    exit((fprintf(stderr, "libcenote, status %u: %s\n", (unsigned)status, text), 1));
}

/* With 0, a free place. */
static member *member_of(uint64_t server) {
    for (member *it = members; it < members + MAX_SERVERS; it++)
        if (it->server == server) return it;
    exit((fputs("there are more servers than this program has room for\n", stderr), 1));
}

/* NULL if there is none; with 0, a free place: a server has two sockets at most. */
static monitor *monitor_of(uint64_t server, uint64_t socket) {
    for (monitor *it = monitors; it < monitors + MAX_SOCKETS; it++)
        if (it->server == server && it->socket == socket) return it;
    return NULL;
}

/* CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET follows. */
static void fail(const monitor *it, const char *why) {
    cenote_cause_options about = CENOTE_CAUSE_OPTIONS_INIT;
    about.stage = it->is_connecting ? CENOTE_CAUSE_STAGE_TCP : CENOTE_CAUSE_STAGE_HELLO;
    about.text = why;
    cenote_cause *cause;
    must(cenote_cause_new(&about, &cause));
    must(cenote_client_socket_failed(client, now(), it->server, it->socket, cause));
    must(cenote_cause_release(cause));
}

/* A driver looks names up, without blocking, and puts TLS around the stream. */
static int connect_to(char *address) {
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM}, *to;
    char *port = strrchr(address, ':');
    if (port == NULL) return errno = EAFNOSUPPORT, -1; /* a UNIX domain socket */
    *port++ = 0;
    if (*address == '[') address[strlen(address) - 1] = 0, address++;
    if (getaddrinfo(address, port, &hints, &to) != 0) return errno = EADDRNOTAVAIL, -1;
    int fd = socket(to->ai_family, SOCK_STREAM, 0), error = 0;
    if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || connect(fd, to->ai_addr, to->ai_addrlen) != 0) error = errno;
    freeaddrinfo(to);
    if (error == 0 || error == EINPROGRESS) return fd;
    if (fd >= 0) close(fd);
    return errno = error, -1;
}

static void open_socket(const cenote_client_action *action) {
    char address[300];
    monitor *it = monitor_of(0, 0);
    must(cenote_client_action_text(client, CENOTE_TEXT_KIND_ADDRESS, address, sizeof address, NULL));
    *it = (monitor){action->server, action->socket, connect_to(address), 1};
    if (it->fd < 0) fail(it, strerror(errno));
}

static void send_bytes(const cenote_client_action *action) {
    uint8_t bytes[CHUNK];
    monitor *it = monitor_of(action->server, action->socket);
    if (it == NULL) return;
    must(cenote_client_action_bytes(client, bytes, sizeof bytes, NULL));
    /* So short a message always fits into the socket's buffer: the last reply has been read. */
    if (send(it->fd, bytes, action->length, MSG_NOSIGNAL) != (ssize_t)action->length) fail(it, strerror(errno));
}

/* Its connections would be closed here, too: see poll.c. This program has none, so that there are only events. */
static void perform_of(cenote_pool *pool) {
    cenote_action action = CENOTE_ACTION_INIT;
    do must(cenote_next_action(pool, &action));
    while (action.kind != CENOTE_ACTION_KIND_NONE);
}

static void change_pool(const cenote_client_action *action) {
    member *it = member_of(action->kind == CENOTE_CLIENT_ACTION_KIND_OPEN_POOL ? 0 : action->server);
    char address[300];
    cenote_cause *cause;
    switch (action->kind) {
    case CENOTE_CLIENT_ACTION_KIND_OPEN_POOL:
        must(cenote_client_action_text(client, CENOTE_TEXT_KIND_ADDRESS, address, sizeof address, NULL));
        it->server = action->server;
        must((action->is_ready ? cenote_pool_new_ready : cenote_pool_new)(address, &options, now(), &it->pool));
        break;
    case CENOTE_CLIENT_ACTION_KIND_READY_POOL: must(cenote_ready(it->pool, now())); break;
    case CENOTE_CLIENT_ACTION_KIND_CLEAR_POOL:
        must(cenote_client_action_cause(client, &cause));
        must(cenote_clear(it->pool, now(), cause, action->interrupt, action->has_service ? action->service : NULL));
        must(cenote_cause_release(cause));
        break;
    default: must(cenote_close(it->pool, now())); break;
    }
    perform_of(it->pool);
    if (action->kind == CENOTE_CLIENT_ACTION_KIND_CLOSE_POOL) must(cenote_pool_free(it->pool)), it->server = 0;
}

/* A caller has its server, or an error. */
static void deliver(const cenote_client_action *action) {
    char text[1024];
    answers++;
    if (action->server == 0) {
        cenote_client_action_text(client, CENOTE_TEXT_KIND_MESSAGE, text, sizeof text, NULL);
        printf("%s: none: %s\n", wanted[action->waiter], text);
        return;
    }
    found++;
    must(cenote_client_action_text(client, CENOTE_TEXT_KIND_ADDRESS, text, sizeof text, NULL));
    printf("%s: %s\n", wanted[action->waiter], text);
}

static void tell(const cenote_client_action *action) {
    char text[4096];
    if (action->event != CENOTE_CLIENT_EVENT_KIND_TOPOLOGY_DESCRIPTION_CHANGED) return;
    cenote_client_action_text(client, CENOTE_TEXT_KIND_MESSAGE, text, sizeof text, NULL); /* its beginning, if it is longer */
    printf("known: %s\n", text);
}

static void perform(const cenote_client_action *action) {
    monitor *it;
    switch (action->kind) {
    case CENOTE_CLIENT_ACTION_KIND_OPEN_POOL:
    case CENOTE_CLIENT_ACTION_KIND_READY_POOL:
    case CENOTE_CLIENT_ACTION_KIND_CLEAR_POOL:
    case CENOTE_CLIENT_ACTION_KIND_CLOSE_POOL: change_pool(action); break;
    case CENOTE_CLIENT_ACTION_KIND_OPEN_SOCKET: open_socket(action); break;
    case CENOTE_CLIENT_ACTION_KIND_SEND: send_bytes(action); break;
    case CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET:
        it = monitor_of(action->server, action->socket);
        if (it->fd >= 0) close(it->fd);
        *it = (monitor){0};
        break;
    case CENOTE_CLIENT_ACTION_KIND_DELIVER: deliver(action); break;
    case CENOTE_CLIENT_ACTION_KIND_EMIT_EVENT: tell(action); break;
    default: break; /* this program has no use for the least round trip */
    }
}

static void perform_all(void) {
    cenote_client_action action = CENOTE_CLIENT_ACTION_INIT;
    for (;;) {
        must(cenote_client_next_action(client, &action));
        if (action.kind == CENOTE_CLIENT_ACTION_KIND_NONE) break;
        perform(&action);
    }
    fflush(stdout);
}

static void on_ready(monitor *it) {
    uint8_t bytes[CHUNK];
    if (it->is_connecting) {
        /* If it did not connect, sending says why. */
        it->is_connecting = 0;
        must(cenote_client_connected(client, now(), it->server, it->socket));
        return;
    }
    ssize_t count = recv(it->fd, bytes, sizeof bytes, 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) fail(it, count < 0 ? strerror(errno) : "closed by the peer");
    else must(cenote_client_received(client, now(), it->server, it->socket, bytes, (size_t)count));
}

/* Until one is ready, or something is due. */
static void wait_for_sockets(uint64_t end) {
    struct pollfd polled[MAX_SOCKETS];
    uint64_t next, time = now();
    must(cenote_client_next_deadline(client, &next));
    if (end < next) next = end;
    for (int i = 0; i < MAX_SOCKETS; i++) {
        polled[i].fd = monitors[i].server == 0 ? -1 : monitors[i].fd;
        polled[i].events = monitors[i].is_connecting ? POLLOUT : POLLIN;
    }
    int wait = next == CENOTE_NEVER ? -1 : next <= time ? 0 : (int)((next - time) / 1000000 + 1);
    if (poll(polled, MAX_SOCKETS, wait) < 0) return; /* a signal: the next round waits again */
    for (int i = 0; i < MAX_SOCKETS; i++)
        if (polled[i].fd >= 0 && polled[i].revents != 0) on_ready(&monitors[i]);
}

int main(int count, char **arguments) {
    if (count < 2 || count > 3) return fputs("usage: discover URI [SECONDS]\n", stderr), 2;
    uint64_t end = count > 2 ? now() + (uint64_t)atoi(arguments[2]) * SECOND : 0;
    must(cenote_options_from_uri(arguments[1], &options));
    options.min_pool_size = 0;
    must(cenote_client_new(arguments[1], "discover.c", NULL, now(), &client));
    const uint32_t selectors[CALLERS] = {CENOTE_SERVER_SELECTOR_PRIMARY, CENOTE_SERVER_SELECTOR_SECONDARY};
    srand((unsigned)now());
    for (uintptr_t caller = 0; caller < CALLERS; caller++)
        must(cenote_client_select(client, now(), caller + 1, caller, selectors[caller], CENOTE_NEVER, NULL, 0, (uint64_t)rand()));
    perform_all();
    while (answers < CALLERS || now() < end) {
        wait_for_sockets(answers < CALLERS ? CENOTE_NEVER : end);
        must(cenote_client_timer(client, now()));
        perform_all();
    }
    must(cenote_client_close(client, now()));
    perform_all();
    must(cenote_client_free(client));
    return found == CALLERS ? 0 : 1;
}
