#!/usr/bin/env python3
"""Writes src/abi.js and its types, the numbers of a pool, and src/layout.js, its structures as WebAssembly has them, from the C
header and its list.

make_abi.py            writes them
make_abi.py --check    fails unless they are current
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from make_abi import INCLUDE, class_name, fields, members  # noqa: E402

# Name, size and alignment in WebAssembly, where pointers have 32 bits.
TYPES = {
    "uint32_t": ("u32", 4),
    "int32_t": ("i32", 4),
    "uint64_t": ("u64", 8),
    "int64_t": ("i64", 8),
    "uintptr_t": ("u32", 4),
    "size_t": ("u32", 4),
    "bool": ("bool", 1),
    "const char *": ("text", 4),
}
# What JavaScript has in milliseconds, and C in nanoseconds.
TIMES = set(
    "deadline duration created since after max_idle_time wait_queue_timeout pause_after_failure max_lifetime"
    " leak_detection_threshold unanswered_threshold codel_target codel_interval overload_backoff".split()
)
WRITTEN = {"cenote_options", "cenote_cause_options"}
START = """// Numbers and structures of libcenote in WebAssembly: cenote.h explains them. Written by make_abi.py.
"""
READERS = """
/// A 64-bit number, exact up to 2 ** 53; the largest one is never.
const u64 = (words, at) =>
  words[at + 1] === 0xffffffff && words[at] === 0xffffffff ? Infinity : words[at] + words[at + 1] * 0x100000000;
"""


def is_of_pools(name: str) -> bool:
    return not name.startswith(("cenote_client", "cenote_server_")) or name == "cenote_server_verdict"


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda it: it[1].upper(), name)


def comments(header: str) -> dict[str, str]:
    """What the header says of each structure, field and member, as a comment of TypeScript."""
    found = {}
    texts = r"((?:^ *//.*\n)+)"
    for body, name in re.findall(r"^(?:typedef struct|enum \w+)([^{};]*\{[^}]*\}) ?(\w*)", header, re.M):
        owner = name or re.search(r"CENOTE_\w+", body)[0]
        for text, item in re.findall(texts + r" +[\w *]*?(\w+)(?:\[\d+\])?(?: = \d+)?[;,]", body, re.M):
            found[item if item.startswith("CENOTE_") else f"{owner}.{item}"] = " ".join(re.findall(r"// ?(.*)", text))
    return found


def commented(text: str | None, indent: str, enums: list[str]) -> str:
    """A comment with the names of JavaScript; none where it would only name the type."""
    if text is None or re.fullmatch(r"An? `cenote_\w+`\.", text):
        return ""

    def member(found: re.Match[str]) -> str:
        enum = next(name for name in enums if found[1].startswith(name.upper() + "_"))
        return f"`{class_name(enum)}.{found[1].removeprefix(enum.upper() + '_')}`"

    text = text.replace("`CENOTE_NEVER`", "`Infinity`").replace("`CENOTE_NO_MAINTENANCE`", "`NO_MAINTENANCE`")
    text = re.sub(r"`(CENOTE_\w+)`", member, text)
    named = lambda it: class_name(it[1]) if it[1] in enums else camel(it[1].removeprefix("cenote_"))  # noqa: E731
    return f"{indent}/** " + re.sub(r"`([a-z]+_\w+)`", lambda it: f"`{named(it)}`", text) + " */\n"


def layout(listed: list[tuple[str, str, str]]) -> tuple[int, list[tuple[str, str, int]]]:
    """The size of a structure, and its fields: name, kind and offset."""
    place, widest, placed = 0, 1, []
    for c_type, name, length in listed:
        kind, size = ("bytes", 1) if length else TYPES[c_type]
        place = -(-place // size) * size
        placed.append((name, kind, place))
        place += size * int(length or 1)
        widest = max(widest, size)
    return -(-place // widest) * widest, [it for it in placed if it[0] not in ("size", "reserved")]


def reader(name: str, size: int, placed: list[tuple[str, str, int]]) -> str:
    """A function that reads a structure which the library has written."""
    lines = []
    for field, kind, place in placed:
        word = f"words[word + {place // 4}]"
        value = {
            "u32": word,
            "i32": word + " | 0",
            "u64": f"u64(words, word + {place // 4})",
            "bool": f"bytes[at + {place}] !== 0",
            "bytes": f"bytes[at + {place + 12}] !== 0 ? bytes.slice(at + {place}, at + {place + 12}) : null",
        }[kind]
        if field in TIMES:
            value += " / 1e6"
        if field != "has_service":
            lines.append(f"    {camel(field)}: {value},\n")
    return (
        f"\nexport const {constant(name)}_SIZE = {size};\n"
        f"export function read{class_name(name)}(words, bytes, at) {{\n  const word = at / 4;\n"
        f"  return {{\n{''.join(lines)}  }};\n}}\n"
    )


def writer(name: str, size: int, placed: list[tuple[str, str, int]]) -> str:
    """Where the fields are of a structure that the library reads."""
    lines = [
        f'  {camel(field)}: {{ at: {place}, kind: "{"time" if field in TIMES else kind}" }},\n' for field, kind, place in placed
    ]
    return f"\nexport const {constant(name)}_SIZE = {size};\nexport const {constant(name)}_FIELDS = {{\n{''.join(lines)}}};\n"


def constant(name: str) -> str:
    return name.removeprefix("cenote_").upper()


def interface(name: str, placed: list[tuple[str, str, int]], enums: list[str], about: dict[str, str]) -> str:
    kinds = {"bool": "boolean", "bytes": "Uint8Array | null"}
    mark, lines = "?" if name in WRITTEN else "", ""
    for field, kind, _ in placed:
        if field != "has_service":
            text = about.get(f"{name}.{field}", "")
            # A field of an enum says so.
            enum = re.fullmatch(r"An? `(cenote_\w+)`\.", text)
            kind = class_name(enum[1]) if enum else kinds.get(kind, "number")
            lines += commented(text, "  ", enums) + f"  {camel(field)}{mark}: {kind};\n"
    return f"\nexport interface {class_name(name)} {{\n{lines}}}\n"


def made() -> dict[str, str]:
    header, abi = ((INCLUDE / name).read_text() for name in ("cenote.h", "cenote.abi"))
    about = comments(header)
    script, types, layouts = START, START, START + READERS
    enums = members(header, abi)
    names = sorted(enums, key=len, reverse=True)
    for name, numbers in enums.items():
        if is_of_pools(name):
            body = "".join(f"  {member}: {value},\n" for member, value in numbers)
            script += f"\nexport const {class_name(name)} = Object.freeze({{\n{body}}});\n"
            typed = "".join(
                commented(about.get(f"{name.upper()}_{member}"), "  ", names) + f"  readonly {member}: {value};\n"
                for member, value in numbers
            )
            own = class_name(name)
            types += f"\nexport declare const {own}: {{\n{typed}}};\nexport type {own} = (typeof {own})[keyof typeof {own}];\n"
    for name, listed in fields(abi).items():
        if is_of_pools(name):
            size, placed = layout(listed)
            layouts += (writer if name in WRITTEN else reader)(name, size, placed)
            if name != "cenote_cause_options":
                types += interface(name, placed, names, about)
    return {"abi.js": script, "abi.d.ts": types, "layout.js": layouts}


if __name__ == "__main__":
    for file, text in made().items():
        target = HERE / "src" / file
        if sys.argv[1:] != ["--check"]:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            sys.exit(f"{file} is not current: core/c/js/make_abi.py")
