"""Reads traces with PyMongo's bson: they are what any BSON library reads."""

import sys
from datetime import datetime
from pathlib import Path

import bson

INPUTS = {
    "out", "cancel", "in", "use", "hello", "up", "fail", "gone", "ready", "close", "timer", "fork",
    "clear", "set",
}
OTHERS = {"cause", "stage", "fp", "acts", "lost", "end", "service", "connection", "free", "request"}


def read(path):
    with open(path, "rb") as file:
        header, *documents = bson.decode_file_iter(file)
    assert header["format"] == "cenote-trace", header
    assert header["version"] in (1, 2, 3), header
    assert isinstance(header["options"], dict), header
    assert header["origin"] >= datetime(1970, 1, 1), header
    inputs = 0
    for document in documents:
        keys = list(document)
        if keys[0] == "t":
            inputs += 1
            assert keys[1] in INPUTS, document
        else:
            assert keys[0] in OTHERS, document
        if keys[0] == "fp":
            assert document["n"] == inputs, (document, inputs)
    assert documents[-1] == {"end": inputs}, documents[-1]
    assert inputs >= 100, inputs
    print(f"{path.name}: {inputs} inputs in {len(documents) + 1} documents")


def main():
    files = sorted(Path(sys.argv[1]).glob("v*-*.bson"))
    assert len(files) >= 4, files
    for path in files:
        read(path)


if __name__ == "__main__":
    main()
