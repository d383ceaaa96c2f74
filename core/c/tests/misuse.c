/* What a program can do wrong: each call is an error with a text, and changes nothing. `.ci/c` runs it with sanitizers. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cenote.h"

static int calls = 0;

static void expect(int line, cenote_status expected, cenote_status status, const char *text) {
    char seen[256] = "";
    cenote_last_error(seen, sizeof seen, NULL);
    calls++;
    if (status == expected && (status == CENOTE_STATUS_OK || strstr(seen, text) != NULL)) return;
    fprintf(stderr, "misuse.c:%d: status %u \"%s\", expected %u \"%s\"\n", line, (unsigned)status, seen, (unsigned)expected, text);
    exit(1);
}
#define BAD(status, text, call) expect(__LINE__, CENOTE_STATUS_##status, call, text)
#define OK(call) expect(__LINE__, CENOTE_STATUS_OK, call, "")

/* Whether a thread met another one in its call. */
static int is_met = 0;

static void *use(void *pool) {
    for (uint64_t now = 0; now < 100000000 && !__atomic_load_n(&is_met, __ATOMIC_RELAXED); now++) {
        cenote_status status = cenote_timer(pool, now);
        if (status == CENOTE_STATUS_BUSY) {
            BAD(BUSY, "another thread is in a call with this pool", status);
            __atomic_store_n(&is_met, 1, __ATOMIC_RELAXED);
        } else if (status != CENOTE_STATUS_OK) abort();
    }
    return NULL;
}

static void misuse_client(cenote_pool *pool) {
    cenote_client *client;
    cenote_cause *cause;
    cenote_client_action action = CENOTE_CLIENT_ACTION_INIT;
    cenote_server_info server = CENOTE_SERVER_INFO_INIT;
    uint8_t byte = 0;
    size_t length;
    BAD(BAD_POINTER, "the connection string is null", cenote_client_new(NULL, NULL, NULL, 0, &client));
    BAD(BAD_POINTER, "the client is null", cenote_client_new("mongodb://db/", NULL, NULL, 0, NULL));
    BAD(BAD_TEXT, "the connection string", cenote_client_new("db:1", NULL, NULL, 0, &client));
    BAD(BAD_TEXT, "resolve the SRV records of a.test.com", cenote_client_new("mongodb+srv://a.test.com/", NULL, NULL, 0, &client));
    BAD(NOT_UTF8, "driver_name is not UTF-8", cenote_client_new("mongodb://db/", "\xff", NULL, 0, &client));
    BAD(BAD_OPTIONS, "contains `|`", cenote_client_new("mongodb://db/", "a|b", NULL, 0, &client));
    OK(cenote_client_new("mongodb://127.0.0.1/", NULL, NULL, 0, &client));
    BAD(BAD_HANDLE, "no client", cenote_client_timer((cenote_client *)pool, 1));
    BAD(BAD_HANDLE, "no pool", cenote_timer((cenote_pool *)client, 1));
    BAD(BAD_POINTER, "cenote_client_action is null", cenote_client_next_action(client, NULL));
    BAD(BAD_POINTER, "the deadline is null", cenote_client_next_deadline(client, NULL));
    BAD(BAD_POINTER, "cenote_server_info is null", cenote_client_server(client, 1, NULL));
    server.size = action.size = 12;
    BAD(BAD_SIZE, "cenote_server_info.size is 12", cenote_client_server(client, 1, &server));
    BAD(BAD_SIZE, "cenote_client_action.size is 12", cenote_client_next_action(client, &action));
    action.size = sizeof action;
    BAD(NOTHING, "no bytes", cenote_client_action_bytes(client, &byte, 1, &length));
    BAD(NOTHING, "no cause", cenote_client_action_cause(client, &cause));
    BAD(NOTHING, "no server 7", cenote_client_address(client, 7, NULL, 0, &length));
    BAD(BAD_VALUE, "cenote_server_selector: there is no 9", cenote_client_select(client, 1, 1, 0, 9, 5, NULL, 0, 0));
    BAD(BAD_POINTER, "the numbers is null", cenote_client_select(client, 1, 1, 0, 0, 5, NULL, 1, 0));
    BAD(MISUSE, "numbers of requests must increase", cenote_client_select(client, 1, 0, 0, 0, 5, NULL, 0, 0));
    BAD(MISUSE, "never had a server 7", cenote_client_connected(client, 1, 7, 1));
    do OK(cenote_client_next_action(client, &action));
    while (action.kind != CENOTE_CLIENT_ACTION_KIND_OPEN_SOCKET);
    BAD(MISUSE, "not connected yet", cenote_client_received(client, 1, action.server, action.socket, &byte, 1));
    OK(cenote_client_connected(client, 1, action.server, action.socket));
    BAD(MISUSE, "connected already", cenote_client_connected(client, 1, action.server, action.socket));
    BAD(BAD_POINTER, "the bytes is null", cenote_client_received(client, 1, action.server, action.socket, NULL, 1));
    BAD(BAD_VALUE, "no length of the bytes", cenote_client_received(client, 1, action.server, action.socket, &byte, SIZE_MAX));
    do OK(cenote_client_next_action(client, &action));
    while (action.kind != CENOTE_CLIENT_ACTION_KIND_SEND);
    BAD(TRUNCATED, "the buffer has 1", cenote_client_action_bytes(client, &byte, 1, &length));
    if (byte != 0 || length != action.length) exit(1);
    /* The header of a hello of 2 MiB: it is not waited for. */
    const uint8_t header[16] = {0, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0, 221, 7, 0, 0};
    OK(cenote_client_received(client, 1, action.server, action.socket, header, sizeof header));
    do OK(cenote_client_next_action(client, &action));
    while (action.kind != CENOTE_CLIENT_ACTION_KIND_CLOSE_SOCKET);
    OK(cenote_client_free(client));
    BAD(BAD_HANDLE, "was freed", cenote_client_free(client));
    BAD(BAD_HANDLE, "was freed", cenote_client_close(client, 1));
}

int main(void) {
    cenote_pool *pool, *none = NULL;
    cenote_cause *cause;
    cenote_options options = CENOTE_OPTIONS_INIT;
    cenote_cause_options reason = CENOTE_CAUSE_OPTIONS_INIT;
    cenote_action action = CENOTE_ACTION_INIT;
    cenote_snapshot_info snapshot = CENOTE_SNAPSHOT_INFO_INIT;
    cenote_connection_info info = CENOTE_CONNECTION_INFO_INIT;
    cenote_verdict_info verdict = CENOTE_VERDICT_INIT;
    uint64_t number;
    char text[8];
    size_t length;

    /* Null and misaligned pointers. */
    BAD(BAD_POINTER, "the address is null", cenote_pool_new(NULL, &options, 0, &pool));
    BAD(BAD_POINTER, "cenote_options is null", cenote_pool_new("db:1", NULL, 0, &pool));
    BAD(BAD_POINTER, "the pool is null", cenote_pool_new("db:1", &options, 0, NULL));
    BAD(BAD_POINTER, "not aligned", cenote_pool_new("db:1", (void *)((char *)&options + 1), 0, &pool));
    BAD(BAD_POINTER, "the pool is null", cenote_pool_new_ready("db:1", &options, 0, NULL));
    BAD(BAD_POINTER, "null", cenote_options_from_uri(NULL, &options));
    OK(cenote_pool_new("db1.example.com:27017", &options, 0, &pool));
    BAD(BAD_POINTER, "cenote_action is null", cenote_next_action(pool, NULL));
    BAD(BAD_POINTER, "null", cenote_snapshot(pool, NULL));
    BAD(BAD_POINTER, "null", cenote_next_deadline(pool, NULL, NULL));
    BAD(BAD_POINTER, "the answer is null", cenote_is_filled(pool, NULL));
    BAD(BAD_POINTER, "null", cenote_cause_new(NULL, &cause));
    BAD(BAD_POINTER, "the cause is null", cenote_cause_new(&reason, NULL));
    BAD(NOTHING, "no text", cenote_action_text(pool, CENOTE_TEXT_KIND_LOG, NULL, 8, NULL));
    OK(cenote_next_action(pool, &action));
    BAD(BAD_POINTER, "the buffer is null", cenote_action_text(pool, CENOTE_TEXT_KIND_LOG, NULL, 8, NULL));

    /* Handles. */
    BAD(BAD_HANDLE, "it is null", cenote_ready(none, 0));
    BAD(BAD_HANDLE, "it is null", cenote_pool_free(none));
    BAD(BAD_HANDLE, "it is null", cenote_clear(pool, 0, NULL, 0, NULL));
    BAD(BAD_HANDLE, "it is null", cenote_cause_retain(NULL));
    BAD(BAD_HANDLE, "it is null", cenote_cause_release(NULL));
    BAD(BAD_HANDLE, "it is null", cenote_cause_text(NULL, CENOTE_TEXT_KIND_MESSAGE, text, sizeof text, NULL));
    BAD(BAD_HANDLE, "never was one", cenote_ready((cenote_pool *)&options, 0));
    BAD(BAD_HANDLE, "never was one", cenote_ready((cenote_pool *)UINTPTR_MAX, 0));
    BAD(BAD_HANDLE, "no cause", cenote_establish_failed(pool, 0, 1, (const cenote_cause *)pool));
    OK(cenote_cause_new(&reason, &cause));
    BAD(BAD_HANDLE, "no pool", cenote_ready((cenote_pool *)cause, 0));

    /* Sizes and numbers. */
    action.size = snapshot.size = info.size = verdict.size = options.size = reason.size = 12;
    BAD(BAD_SIZE, "cenote_action.size is 12", cenote_next_action(pool, &action));
    BAD(BAD_SIZE, "cenote_snapshot_info.size", cenote_snapshot(pool, &snapshot));
    BAD(BAD_SIZE, "cenote_connection_info.size", cenote_connection(pool, 1, &info));
    BAD(BAD_SIZE, "cenote_verdict_info.size", cenote_monitor_verdict(cause, &verdict));
    BAD(BAD_SIZE, "cenote_options.size", cenote_pool_new("db:1", &options, 0, &pool));
    BAD(BAD_SIZE, "cenote_options.size", cenote_set_options(pool, 0, &options));
    BAD(BAD_SIZE, "cenote_options.size", cenote_options_from_uri("mongodb://db/", &options));
    BAD(BAD_SIZE, "cenote_cause_options.size", cenote_cause_new(&reason, &cause));
    options.size = sizeof options;
    reason.size = sizeof reason;
    reason.kind = 99;
    BAD(BAD_VALUE, "cenote_cause_kind: there is no 99", cenote_cause_new(&reason, &cause));
    BAD(BAD_VALUE, "cenote_cause_stage: there is no 8", cenote_enter_stage(pool, 1, 1, 8));
    BAD(BAD_VALUE, "cenote_purpose: there is no 7", cenote_check_out(pool, 1, 1, 0, CENOTE_NEVER, 7));
    BAD(BAD_VALUE, "cenote_text_kind: there is no 4000000000", cenote_action_text(pool, UINT32_C(4000000000), text, 8, NULL));

    /* Texts. */
    reason.kind = CENOTE_CAUSE_KIND_NETWORK;
    reason.text = "caf\xe9";
    BAD(NOT_UTF8, "text is not UTF-8", cenote_cause_new(&reason, &cause));
    reason.text = NULL;
    reason.code_name = "\xc3";
    BAD(NOT_UTF8, "code_name is not UTF-8", cenote_cause_new(&reason, &cause));
    reason.code_name = NULL;
    reason.labels = "\xed\xa0\x80";
    BAD(NOT_UTF8, "labels is not UTF-8", cenote_cause_new(&reason, &cause));
    BAD(NOT_UTF8, "the connection string is not UTF-8", cenote_options_from_uri("mongodb://\xff/", &options));
    BAD(NOT_UTF8, "the address is not UTF-8", cenote_pool_new("\xff", &options, 0, &pool));
    BAD(BAD_TEXT, "the address", cenote_pool_new("", &options, 0, &pool));
    BAD(BAD_TEXT, "the connection string", cenote_options_from_uri("db:1", &options));
    OK(cenote_options_from_uri("mongodb://db/?maxPoolSize=3", &options));
    if (options.max_pool_size != 3 || options.min_pool_size != CENOTE_NOT_SET) return 1;
    BAD(TRUNCATED, "the buffer has 8", cenote_cause_text(cause, CENOTE_TEXT_KIND_MESSAGE, text, sizeof text, &length));
    if (strcmp(text, "operati") != 0 || length != strlen("operation: ")) return 1;
    BAD(TRUNCATED, "", cenote_cause_text(cause, CENOTE_TEXT_KIND_MESSAGE, NULL, 0, &length));
    BAD(NOTHING, "no text", cenote_cause_text(cause, CENOTE_TEXT_KIND_LOG, text, sizeof text, &length));

    /* Inputs that make no sense. */
    BAD(MISUSE, "never made a connection c7", cenote_check_in(pool, 1, 7, 0));
    BAD(MISUSE, "never made a connection c1", cenote_established(pool, 1, UINT64_MAX, 0));
    BAD(MISUSE, "only a load-balanced pool", cenote_clear(pool, 1, cause, 0, (const uint8_t *)"twelve bytes"));
    BAD(NOTHING, "no connection 3", cenote_generation_of(pool, 3, &number));
    options.load_balanced = 1;
    BAD(MISUSE, "load-balanced mode", cenote_set_options(pool, 1, &options));
    options.min_pool_size = 9;
    BAD(MISUSE, "minPoolSize is 9", cenote_set_options(pool, 1, &options));
    options.max_pool_size = -7;
    BAD(BAD_OPTIONS, "max_pool_size is -7", cenote_set_options(pool, 1, &options));

    misuse_client(pool);

    /* Two threads at once: one of them is told, and nothing breaks. */
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, use, pool) != 0) return 1;
    for (int i = 0; i < 2; i++)
        if (pthread_join(threads[i], NULL) != 0) return 1;
    if (!is_met) return 1;

    /* Freed twice, and used afterwards. */
    OK(cenote_cause_retain(cause));
    OK(cenote_cause_release(cause));
    OK(cenote_cause_release(cause));
    BAD(BAD_HANDLE, "was freed", cenote_cause_release(cause));
    BAD(BAD_HANDLE, "was freed", cenote_cause_retain(cause));
    BAD(BAD_HANDLE, "was freed", cenote_clear(pool, 1, cause, 0, NULL));
    OK(cenote_pool_free(pool));
    BAD(BAD_HANDLE, "was freed", cenote_pool_free(pool));
    BAD(BAD_HANDLE, "was freed", cenote_timer(pool, 1));
    cenote_pool *next;
    options.max_pool_size = 9;
    OK(cenote_pool_new("db:1", &options, 0, &next));
    BAD(BAD_HANDLE, "was freed", cenote_timer(pool, 1));
    OK(cenote_pool_free(next));
    printf("%d calls\n", calls);
    return 0;
}
