"""What PyMongo knows of a deployment: python pymongo_topology.py

Reads a request a line on standard input, and answers each with a line of JSON on standard output, until the input
ends. `{"connect": URI}` connects to another deployment, `{"connect": URI, "names": PORT}` asks the name server at this
port of 127.0.0.1 for its SRV records, and `{}` asks what the topology is now. `spec-tests/tests/clients/pymongo` runs this.
"""

import json
import sys

from dns import resolver
from pymongo import MongoClient, common
from pymongo.errors import ConfigurationError

# Instead of a minute, before PyMongo reads SRV records again.
common.MIN_SRV_RESCAN_INTERVAL = 0.5


def use_name_server(port):
    resolver.default_resolver = resolver.Resolver(configure=False)
    resolver.default_resolver.nameservers = ["127.0.0.1"]
    resolver.default_resolver.port = port


def text(address):
    """As in a connection string; a UNIX domain socket has no port."""
    host, port = address
    return host if port is None else f"{host}:{port}"


def hexadecimal(object_id):
    return object_id and str(object_id)


def version(topology_version):
    if topology_version is None:
        return None
    return [str(topology_version["processId"]), topology_version["counter"]]


def server(description):
    """Of a server that did not reply, or was not asked, there is only its type."""
    kind = description.server_type_name
    if kind in ("Unknown", "LoadBalancer"):
        return {"type": kind}
    return {
        "type": kind,
        "setName": description.replica_set_name,
        "me": description.me and text(description.me),
        # PyMongo has it in the server's spelling, where it has all other addresses in lower case.
        "primary": description.primary and text(description.primary).lower(),
        "members": sorted(text(address) for address in description.all_hosts),
        "tags": dict(description.tags),
        "setVersion": description.set_version,
        "electionId": hexadecimal(description.election_id),
        "wireVersions": [description.min_wire_version, description.max_wire_version],
        "maxBsonObjectSize": description.max_bson_size,
        "maxMessageSizeBytes": description.max_message_size,
        "maxWriteBatchSize": description.max_write_batch_size,
        "logicalSessionTimeoutMinutes": description.logical_session_timeout_minutes,
        "topologyVersion": version(description.topology_version),
    }


def is_compatible(topology):
    try:
        topology.check_compatible()
    except ConfigurationError:
        return False
    return True


def shown(topology):
    servers = topology.server_descriptions()
    return {
        "type": topology.topology_type_name,
        "setName": topology.replica_set_name,
        "maxSetVersion": topology.max_set_version,
        "maxElectionId": hexadecimal(topology.max_election_id),
        "logicalSessionTimeoutMinutes": topology.logical_session_timeout_minutes,
        "isCompatible": is_compatible(topology),
        "servers": {text(address): server(servers[address]) for address in servers},
    }


def main():
    client = None
    for line in sys.stdin:
        request = json.loads(line)
        if "connect" in request:
            if client is not None:
                client.close()
            if "names" in request:
                use_name_server(request["names"])
            client = MongoClient(request["connect"])
        print(json.dumps(shown(client.topology_description)), flush=True)
    client.close()


if __name__ == "__main__":
    main()
