"""Runs a program under a seccomp profile of OCI's format, as container runtimes do.

    with_seccomp.py PROFILE PROGRAM [ARGUMENT...]

Uses libseccomp, which container runtimes use too. Ends with status 77 where there is none.
"""

import ctypes
import json
import os
import sys

ACTIONS = {"SCMP_ACT_ALLOW": lambda call: 0x7FFF0000, "SCMP_ACT_ERRNO": lambda call: 0x00050000 | call.get("errnoRet", 1)}
COMPARISONS = {"SCMP_CMP_NE": 1, "SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}


class Comparison(ctypes.Structure):
    _fields_ = [
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    ]


def load(profile):
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        sys.exit(77)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(Comparison),
    ]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    context = library.seccomp_init(0x00050000 | profile["defaultErrnoRet"])
    assert context, "seccomp_init"
    for call in profile["syscalls"]:
        arguments = call.get("args", [])
        comparisons = (Comparison * len(arguments))(*[
            Comparison(one["index"], COMPARISONS[one["op"]], one["value"], one.get("valueTwo", 0)) for one in arguments
        ])
        for name in call["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            assert number != -1, f"no system call has this name: {name}"
            # Negative numbers are of other architectures.
            if number < 0:
                continue
            action = ACTIONS[call["action"]](call)
            status = library.seccomp_rule_add_array(context, action, number, len(arguments), comparisons)
            assert status == 0, f"{name}: {status}"
    assert library.seccomp_load(context) == 0, "seccomp_load"


with open(sys.argv[1], encoding="utf-8") as file:
    load(json.load(file))
os.execvp(sys.argv[2], sys.argv[2:])
