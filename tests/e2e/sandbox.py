#!/usr/bin/env python3
"""Runs a program as grapevine.service would, without systemd: as user nobody, without a capability, with
every file system read-only, and under a seccomp filter of the unit's SystemCallFilter, which ends the process
at a call that the unit forbids (systemd would answer with an error: the router might get by with that).

usage: sandbox.py UNIT COMMAND...    (as root)

The unit lists the objects that a process may not create: other families of sockets, memory that can be written and
run. `why_not()` names the machine's missing features.
"""
import ctypes
import ctypes.util
import os
import re
import shutil
import socket
import subprocess
import sys

NOBODY = 65534
ALLOW, KILL = 0x7fff0000, 0x80000000
EAFNOSUPPORT = 0x00050000 | 97
PROT_EXEC, PROT_WRITE = 4, 2
NOT_EQUAL, MASKED_EQUAL = 1, 7  # enum scmp_compare

libc = ctypes.CDLL(None, use_errno=True)


def why_not():
    if os.geteuid() != 0:
        return "want root, to make a mount namespace"
    if not shutil.which("systemd-analyze"):
        return "want systemd-analyze"
    if not ctypes.util.find_library("seccomp"):
        return "want libseccomp2"
    if subprocess.run([sys.executable, os.path.abspath(__file__), "--try"], capture_output=True).returncode:
        return "want a mount namespace, and mount_setattr() of Linux 5.12"
    return None


def settings(unit):
    """[(name, value)] in order."""
    with open(unit, encoding="utf-8") as f:
        return re.findall(r"^(\w+)=(.*)$", f.read(), re.M)


def sets():
    """{"@name": its calls and sets}, as this systemd has them."""
    out, name = {}, None
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True, capture_output=True,
                          text=True).stdout
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        if line.startswith("@"):
            name = line.strip()
            out[name] = []
        elif not line.strip() or line.startswith("#"):
            name = name if line.strip() else None
        elif name and not line.strip().startswith("#"):
            out[name].append(line.strip())
    return out


def expand(words, known):
    calls = set()
    for word in words:
        calls |= expand(known[word], known) if word.startswith("@") else {word}
    return calls


def allowed(unit):
    """The calls that the unit lets through."""
    known = sets()
    calls = expand(["@default"], known)
    for name, value in settings(unit):
        if name == "SystemCallFilter":
            words = expand(value.lstrip("~").split(), known)
            calls = calls - words if value.startswith("~") else calls | words
    if dict(settings(unit)).get("RestrictNamespaces") == "yes":
        calls -= {"unshare", "setns"}
    return calls


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def filter_calls(unit):
    seccomp = ctypes.CDLL(ctypes.util.find_library("seccomp"), use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    families = [getattr(socket, f).value
                for f in dict(settings(unit))["RestrictAddressFamilies"].split()]
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(KILL)))

    def rule(action, call, *compares):
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return  # another architecture
        array = (Compare * max(len(compares), 1))(*compares)
        if seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(action), number, len(compares), array) != 0:
            sys.exit("sandbox: no rule for " + call)

    special = {"socket", "mmap", "mprotect", "pkey_mprotect"}
    for call in sorted(allowed(unit) - special):
        rule(ALLOW, call)
    for family in range(64):
        rule(ALLOW if family in families else EAFNOSUPPORT, "socket", Compare(0, 4, family, 0))
    both = PROT_EXEC | PROT_WRITE
    for pair in (0, PROT_WRITE, PROT_EXEC):
        rule(ALLOW, "mmap", Compare(2, MASKED_EQUAL, both, pair))
    rule(ALLOW, "mprotect", Compare(2, MASKED_EQUAL, PROT_EXEC, 0))
    if seccomp.seccomp_load(context) != 0:
        sys.exit("sandbox: the filter cannot be loaded")


def must(status, what):
    if status != 0:
        sys.exit("sandbox: %s: %s" % (what, os.strerror(ctypes.get_errno())))


class MountAttributes(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("set", "clear", "propagation", "userns")]


def read_only():
    new_namespace, recursive, private, mount_setattr = 0x20000, 0x4000, 0x40000, 442
    must(libc.unshare(new_namespace), "unshare")
    must(libc.mount(None, b"/", None, recursive | private, None), "private mounts")
    attributes = MountAttributes(set=1)  # MOUNT_ATTR_RDONLY
    must(libc.syscall(mount_setattr, -1, b"/", 0x8000, ctypes.byref(attributes), ctypes.sizeof(attributes)),
         "mount_setattr")


def main():
    read_only()
    if sys.argv[1:] == ["--try"]:
        return
    unit, command = sys.argv[1], sys.argv[2:]
    drop_bounding, no_new_privileges = 24, 38
    for capability in range(64):
        libc.prctl(drop_bounding, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    must(libc.prctl(no_new_privileges, 1, 0, 0, 0), "no_new_privs")
    filter_calls(unit)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
