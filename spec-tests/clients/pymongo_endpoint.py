"""PyMongo against `cenote endpoint`: python pymongo_endpoint.py PATH_OF_CENOTE

Every check prints a line. The first that fails ends it with exit status 1, the reason, and what the
endpoint said. `.ci/clients` installs PyMongo with its three compressors and runs this.
"""

import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory
from urllib.parse import quote, urlsplit

from harness import check, connected, endpoint, fails, option, refused, run, wait_until
from pymongo import monitoring
from pymongo.errors import AutoReconnect, DuplicateKeyError, NetworkTimeout, OperationFailure

USER, PASSWORD = "app", "pen/c:il"
LOGIN = ["--auth", f"{USER}:{PASSWORD}"]
COMPRESSORS = ["zlib", "snappy", "zstd"]
DOCUMENTS, THREADS = 10_000, 32


def fail_point(client, mode, **data):
    client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)


class Commands(monitoring.CommandListener):
    def __init__(self):
        self.all = []

    def started(self, event):
        self.all.append(event)

    def succeeded(self, event):
        pass

    def failed(self, event):
        pass

    def named(self, name):
        return [event for event in self.all if event.command_name == name]


@check
def a_certificate_of_the_right_authority_is_accepted():
    with endpoint("--tls") as uri, connected(uri) as client:
        assert client.admin.command("ping")["ok"] == 1
        assert option(uri, "tls") == "true"


@check
def a_certificate_of_another_authority_is_refused():
    with endpoint("--tls") as other, endpoint("--tls") as uri:
        why = refused(uri, tlsCAFile=option(other, "tlsCAFile"))
        assert "CERTIFICATE_VERIFY_FAILED" in why, why


@check
def a_client_without_certificate_is_refused_where_one_is_required():
    with endpoint("--tls", "--require-client-certificate") as uri:
        with connected(uri) as client:
            assert client.admin.command("ping")["ok"] == 1
        bare = f"mongodb://{urlsplit(uri).netloc}/"
        why = refused(bare, tls=True, tlsCAFile=option(uri, "tlsCAFile"))
        assert "CERTIFICATE_REQUIRED" in why, why


@check
def scram_and_compression_over_tls():
    with endpoint("--tls", *LOGIN) as uri:
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"]:
            for compressor in COMPRESSORS:
                with connected(uri, authMechanism=mechanism, compressors=compressor) as client:
                    logged_in_and_compressed(client, USER, compressor)


@check
def x509_and_compression_over_tls():
    with endpoint("--tls", "--x509") as uri:
        assert option(uri, "authMechanism") == "MONGODB-X509"
        for compressor in COMPRESSORS:
            with connected(uri, compressors=compressor) as client:
                logged_in_and_compressed(client, "CN=client,OU=Tests,O=Cenote", compressor)


def logged_in_and_compressed(client, user, compressor):
    users = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
    assert [it["user"] for it in users] == [user], users
    before = compressed(client)
    birds = client.zoo.birds
    birds.drop()
    birds.insert_many([{"_id": n, "song": "tweet " * 100} for n in range(50)])
    assert len(list(birds.find())) == 50
    more = {name: count - before[name] for name, count in compressed(client).items()}
    # drop, insert and find, and one serverStatus, which did not count itself before.
    assert more[compressor] >= 4, f"{compressor}: {more}"
    assert all(count == 0 for name, count in more.items() if name != compressor), more


def compressed(client):
    return client.admin.command("serverStatus")["cenote"]["compressedCommands"]


@check
def a_server_that_compresses_nothing_is_not_sent_anything_compressed():
    with endpoint("--compressors") as uri, connected(uri, compressors=COMPRESSORS) as client:
        client.admin.command("ping")
        assert set(compressed(client).values()) == {0}


@check
def a_wrong_password_is_refused():
    with endpoint(*LOGIN) as uri:
        for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-1"]:
            with connected(uri, password="wrong", authMechanism=mechanism) as client:
                error = fails(OperationFailure, lambda: client.zoo.birds.find_one())
                assert error.code == 18, error


@check
def ten_thousand_documents_from_32_threads():
    with endpoint("--tls", *LOGIN) as uri:
        with connected(uri, compressors="zstd", maxPoolSize=8) as client:
            birds = client.zoo.birds
            share = range(0, DOCUMENTS, THREADS)

            def insert(first):
                mine = [{"_id": first + n} for n in share if first + n < DOCUMENTS]
                for document in mine[:20]:
                    birds.insert_one(document)
                birds.insert_many(mine[20:])

            def find(first):
                for n in list(share)[:20]:
                    assert birds.find_one({"_id": first + n}) == {"_id": first + n}
                return sum(1 for _ in birds.find(batch_size=1000))

            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(insert, range(THREADS)))
                counts = set(pool.map(find, range(THREADS)))
            assert counts == {DOCUMENTS}, counts
            assert birds.count_documents({}) == DOCUMENTS
            assert Counter(it["_id"] for it in birds.find()) == Counter(range(DOCUMENTS))
            fails(DuplicateKeyError, lambda: birds.insert_one({"_id": 1}))
            connections = client.admin.command("serverStatus")["connections"]["totalCreated"]
            # The pool's, and those of the monitor.
            assert connections <= 8 + 2, connections


@check
def a_fail_point_refuses_with_code_and_labels():
    with endpoint() as uri, connected(uri, retryReads=False) as client:
        labels = ["Tired", "Hungry"]
        fail_point(client, {"times": 2}, failCommands=["find"], errorCode=96, errorLabels=labels)
        for _ in range(2):
            error = fails(OperationFailure, lambda: client.zoo.birds.find_one())
            assert error.code == 96, error
            assert all(error.has_error_label(label) for label in labels), error
        assert client.zoo.birds.find_one() is None


@check
def a_fail_point_closes_the_connection():
    with endpoint() as uri, connected(uri, retryReads=False) as client:
        fail_point(client, {"times": 1}, failCommands=["find"], closeConnection=True)
        error = fails(AutoReconnect, lambda: client.zoo.birds.find_one())
        assert not isinstance(error, NetworkTimeout), error
        assert client.zoo.birds.find_one() is None


@check
def a_fail_point_blocks_the_application_that_it_names():
    options = {"socketTimeoutMS": 500, "retryReads": False}
    with endpoint() as uri, connected(uri, appname="slow", **options) as slow:
        with connected(uri, appname="quick", **options) as quick:
            data = {"blockConnection": True, "blockTimeMS": 5000, "appName": "slow"}
            fail_point(quick, "alwaysOn", failCommands=["find"], **data)
            assert quick.zoo.birds.find_one() is None
            fails(NetworkTimeout, lambda: slow.zoo.birds.find_one())
            quick.admin.command("configureFailPoint", "failCommand", mode="off")
            assert slow.zoo.birds.find_one() is None


@check
def a_retryable_write_is_made_once_although_the_connection_was_closed():
    commands = Commands()
    with endpoint("--topology", "replica-set") as uri:
        with connected(uri, event_listeners=[commands]) as client:
            fail_point(client, {"times": 1}, failCommands=["insert"], closeConnection=True)
            client.zoo.birds.insert_one({"_id": "wren"})
            attempts = commands.named("insert")
            numbers = {event.command["txnNumber"] for event in attempts}
            assert (len(attempts), len(numbers)) == (2, 1), attempts
            assert [it["_id"] for it in client.zoo.birds.find()] == ["wren"]


class Heartbeats(monitoring.ServerHeartbeatListener):
    def __init__(self):
        self.awaited = 0
        self.failures = []

    def started(self, event):
        pass

    def succeeded(self, event):
        self.awaited += event.awaited

    def failed(self, event):
        self.failures.append(event.reply)


@check
def a_monitor_is_told_of_a_change_by_the_stream():
    heartbeats = Heartbeats()
    # Who asks instead of listening does not ask again within this check.
    options = {"heartbeatFrequencyMS": 60_000, "event_listeners": [heartbeats]}
    with endpoint("--topology", "replica-set") as uri, connected(uri, **options) as client:
        assert client.admin.command("ping")["ok"] == 1

        def kind():
            return next(iter(client.topology_description.server_descriptions().values()))

        assert kind().server_type_name == "RSPrimary", kind()
        # From a client of its own: this one would learn of it from the reply.
        with connected(uri, directConnection=True) as other:
            try:
                other.admin.command("replSetStepDown", 60)
            except AutoReconnect:
                pass
        wait_until("a secondary", lambda: kind().server_type_name == "RSSecondary")
        wait_until("an awaited heartbeat", lambda: heartbeats.awaited > 0)
        assert not heartbeats.failures, heartbeats.failures


class Pool(monitoring.ConnectionPoolListener):
    def __init__(self):
        self.cleared = []
        self.checked_out = 0

    def pool_cleared(self, event):
        self.cleared.append(event.service_id)

    def connection_checked_out(self, event):
        self.checked_out += 1

    def ignore(self, event):
        pass

    pool_created = pool_ready = pool_closed = ignore
    connection_created = connection_ready = connection_closed = ignore
    connection_check_out_started = connection_check_out_failed = ignore
    connection_checked_in = ignore


@check
def behind_a_load_balancer_connections_know_their_service():
    commands, pool = Commands(), Pool()
    options = {"retryReads": False, "event_listeners": [commands, pool]}
    with endpoint("--load-balanced", "2", "--tls", *LOGIN) as uri:
        assert option(uri, "loadBalanced") == "true"
        with connected(uri, **options) as client:
            birds = client.zoo.birds
            birds.insert_many([{"_id": n} for n in range(100)])
            # An open cursor keeps its connection, so that the other one is another service's.
            cursors = [birds.find(batch_size=10), birds.find(batch_size=10)]
            for cursor in cursors:
                next(cursor)
            services = {event.service_id for event in commands.named("find")}
            assert len(services) == 2 and None not in services, services
            assert all(len(list(cursor)) == 99 for cursor in cursors)
            for event in commands.named("getMore"):
                assert event.service_id in services, event

            fail_point(client, {"times": 1}, failCommands=["find"], closeConnection=True)
            fails(AutoReconnect, lambda: birds.find_one())
            assert pool.cleared == [commands.named("find")[-1].service_id], pool.cleared
            assert birds.find_one() is not None
            assert pool.checked_out > 0


@check
def a_unix_domain_socket_serves_as_well():
    with TemporaryDirectory() as folder:
        path = f"{folder}/cenote.sock"
        with endpoint("--socket", path, *LOGIN) as uri, connected(uri) as client:
            assert quote(path, safe="") in uri, uri
            assert client.admin.command("ping")["ok"] == 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        sys.exit(2)
    sys.exit(run())
