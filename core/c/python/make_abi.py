#!/usr/bin/env python3
"""Writes cenote/_abi.py, the numbers, structures and functions of libcenote for ctypes, from the C header and its list.

make_abi.py            writes it
make_abi.py --check    fails unless it is current
"""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parent / "include"
TARGET = HERE / "cenote" / "_abi.py"
TYPES = {
    "uint32_t": ("c_uint32", "int"),
    "int32_t": ("c_int32", "int"),
    "uint64_t": ("c_uint64", "int"),
    "int64_t": ("c_int64", "int"),
    "uintptr_t": ("c_size_t", "int"),
    "size_t": ("c_size_t", "int"),
    "bool": ("c_bool", "bool"),
    "const char *": ("c_char_p", "bytes | None"),
}
START = '''"""Numbers, structures and functions of libcenote: cenote.h explains them. Written by make_abi.py."""

# ruff: noqa: E501
import ctypes
from enum import IntEnum
from typing import Any


def _typed(structure: Any) -> Any:
    """Fields that are annotated with an enum have its members as values, not numbers."""
    for name, kind in structure.__annotations__.items():
        if isinstance(kind, type) and issubclass(kind, IntEnum):
            setattr(structure, name, _members(getattr(structure, name), kind))
    return structure


def _members(field: Any, kind: type[IntEnum]) -> property:
    get, members = field.__get__, {int(it): it for it in kind}
    return property(lambda structure: members[get(structure)], field.__set__)
'''


def class_name(c_name: str) -> str:
    """`cenote_action_kind` is `ActionKind`."""
    return c_name.removeprefix("cenote_").title().replace("_", "")


def members(header: str, abi: str) -> dict[str, list[tuple[str, str]]]:
    """The members of each enum, and their numbers."""
    names = sorted(re.findall(r"^enum (cenote_\w+)", header, re.M), key=len, reverse=True)
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in sorted(names)}
    for constant, value in re.findall(r"^(CENOTE_\w+) = (\d+)$", abi, re.M):
        name = next(name for name in names if constant.startswith(name.upper() + "_"))
        found[name].append((constant.removeprefix(name.upper() + "_"), value))
    return found


def fields(abi: str) -> dict[str, list[tuple[str, str, str]]]:
    """The fields of each structure: type, name, and length of an array."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for structure, c_type, name, length in re.findall(
        r"^(cenote_\w+)\[\d+\] (.*?) ?(?<=[ *])(\w+)(?:\[(\d+)\])?;$", abi, re.M
    ):
        found.setdefault(structure, []).append((c_type.strip(), name, length))
    return found


def enums(header: str, abi: str) -> list[str]:
    classes = []
    for name, numbers in members(header, abi).items():
        lines = "\n".join(f"    {member} = {value}" for member, value in numbers)
        classes.append(f"class {class_name(name)}(IntEnum):\n{lines}\n")
    return classes


def structures(header: str, abi: str) -> list[str]:
    # A field of an enum says so: "A `cenote_action_kind`."
    enum_fields = {
        (name, field): class_name(enum)
        for body, name in re.findall(r"^typedef struct \{([^}]*)\} (\w+);", header, re.M)
        for enum, field in re.findall(r"// An? `(cenote_\w+)`\.\n *uint32_t (\w+);", body)
    }
    classes = []
    for name, listed in fields(abi).items():
        typed, ctypes_fields = "", ""
        for c_type, field, length in listed:
            kind, python = (f"c_uint8 * {length}", "ctypes.Array[ctypes.c_uint8]") if length else TYPES[c_type]
            typed += f"    {field}: {enum_fields.get((name, field), python)}\n"
            ctypes_fields += f'        ("{field}", ctypes.{kind}),\n'
        classes.append(f"@_typed\nclass {class_name(name)}(ctypes.Structure):\n{typed}\n    _fields_ = (\n{ctypes_fields}    )\n")
    return classes


def argument(c_type: str) -> str:
    """How ctypes passes an argument: pointers as addresses, texts as bytes."""
    if c_type == "const char *":
        return "ctypes.c_char_p"
    return "ctypes.c_void_p" if "*" in c_type else "ctypes." + TYPES[c_type][0]


def functions(abi: str) -> str:
    lines = []
    for name, parameters in re.findall(r"^cenote_status (cenote_\w+)\((.*)\);$", abi, re.M):
        types = [re.sub(r"\w+$", "", parameter).strip() for parameter in parameters.split(", ")]
        lines.append(f'    "{name}": [{", ".join(map(argument, types))}],\n')
    return "FUNCTIONS: dict[str, list[Any]] = {\n" + "".join(lines) + "}\n"


def made() -> str:
    header, abi = ((INCLUDE / name).read_text() for name in ("cenote.h", "cenote.abi"))
    return "\n\n".join([START, *enums(header, abi), *structures(header, abi), functions(abi)])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if not TARGET.exists() or TARGET.read_text() != made():
            sys.exit(f"{TARGET.name} is not current: core/c/python/make_abi.py")
    else:
        TARGET.write_text(made())
