"""`pct`: which command was meant, and the commands that write nothing.

Runs by `/usr/bin/python3 -I` with the standard library only. "contract" in comments is the pct contract, with its section.
"""

import errno
import os
import sys
import time

from . import config, life, locales, machine, push, snapshots, words
from .machine import Die, Settings

VMID = ("vmid", "vmid")
OWNER = {"user": "string", "group": "string", "perms": "string"}
SNAPNAME = ("snapname", "string")
COMMANDS = {
    "config": words.Syntax("config", (VMID,), {"current": "boolean", "snapshot": "string"}, "<vmid> [OPTIONS]"),
    "delsnapshot": words.Syntax("delsnapshot", (VMID, SNAPNAME), {"force": "boolean"}, "<vmid> <snapname> [OPTIONS]"),
    "exec": words.Syntax("exec", (VMID,), {"keep-env": "boolean"}, "<vmid> [<extra-args>] [OPTIONS]", rest=True),
    "list": words.Syntax("list", (), {}, ""),
    "listsnapshot": words.Syntax("listsnapshot", (VMID,), {}, "<vmid>"),
    "pull": words.Syntax("pull", (VMID, ("path", "string"), ("destination", "string")), OWNER, "<vmid> <path> <destination> [OPTIONS]"),
    "push": words.Syntax("push", (VMID, ("file", "string"), ("destination", "string")), OWNER, "<vmid> <file> <destination> [OPTIONS]"),
    "reboot": words.Syntax("reboot", (VMID,), {"timeout": "integer"}, "<vmid> [OPTIONS]"),
    "shutdown": words.Syntax("shutdown", (VMID,), {"forceStop": "boolean", "timeout": "integer"}, "<vmid> [OPTIONS]"),
    "snapshot": words.Syntax("snapshot", (VMID, SNAPNAME), {"description": "string"}, "<vmid> <snapname> [OPTIONS]"),
    "start": words.Syntax("start", (VMID,), {}, "<vmid>"),
    "status": words.Syntax("status", (VMID,), {"verbose": "boolean"}, "<vmid> [OPTIONS]"),
    "stop": words.Syntax("stop", (VMID,), {}, "<vmid>"),
    "unlock": words.Syntax("unlock", (VMID,), {}, "<vmid>"),
}
ABSENT = (
    "clone", "console", "cpusets", "create", "destroy", "df", "enter", "fsck", "fstrim", "help", "migrate", "mount", "pending", "rescan",
    "resize", "restore", "resume", "rollback", "set", "suspend", "template", "unmount",
)  # fmt: skip


def main() -> None:
    """Note the call, then act as pct does."""
    environment = machine.environment()  # as we were called, before this interpreter touched it
    arguments = [os.fsencode(word) for word in sys.argv[1:]]
    machine.note_call(arguments)
    if os.geteuid():
        refuse("Unknown error -1", 255)
    settings = machine.settings()
    time.sleep(settings.delay)  # what Perl takes to load the real one
    if not settings.pmxcfs:
        refuse("Connection refused", 111)
    environment["PATH"] = os.environ["PATH"] = "/sbin:/bin:/usr/sbin:/usr/bin"
    utf8 = locales.is_utf8(environment)
    decoded = [locales.decode(word, utf8) for word in arguments]
    name = command(decoded)
    try:
        parsed = words.parse(syntax(name, settings), decoded[1:])
        status = run(name, parsed, environment, settings)
    except words.Refused as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
    except Die as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.status)
    sys.exit(status)


def command(decoded: list[str]) -> str:
    """The command meant: a unique prefix is enough (contract 2)."""
    given = decoded[0] if decoded else ""
    known = [*COMMANDS, *ABSENT]
    meant = [given] if given in known else [name for name in known if given and name.startswith(given)]
    if len(meant) == 1 and meant[0] in COMMANDS:
        return meant[0]
    if len(meant) == 1:
        sys.stderr.write(f"the lab's pct has no '{meant[0]}'; do: use a real Proxmox node for it\n")
    else:
        sys.stderr.write(f"ERROR: unknown command 'pct {given}'\n" if given else "ERROR: no command specified\n")
        sys.stderr.write("USAGE: pct <COMMAND> [ARGS] [OPTIONS]\n")
    sys.exit(255)


def syntax(name: str, settings: Settings) -> words.Syntax:
    """What a command takes; exec has no --keep-env before PVE 8.2."""
    if name == "exec" and not settings.keep_env:
        return words.Syntax("exec", (VMID,), {}, "<vmid> [<extra-args>]", rest=True)
    return COMMANDS[name]


def refuse(why: str, status: int) -> None:
    """What pct says when its cluster file system refuses: who is not root (contract 2), everybody when it is down (contract 3)."""
    for number in (1, 2, 3):
        sys.stderr.write(f"ipcc_send_rec[{number}] failed: {why}\n")
    sys.stderr.write(f"Unable to load access control list: {why}\n")
    sys.exit(status)


def run(name: str, parsed: words.Parsed, environment: dict[str, str], settings: Settings) -> int:
    """Carry the command out; returns the exit status."""
    if name == "list":
        return list_all()
    vmid = int(parsed.arguments["vmid"])
    if name == "exec":
        attach(vmid, parsed, environment, settings)
    if name in life.TASKS:
        return life.act(name, vmid, parsed, settings)
    acts = {"push": push.push, "pull": push.pull, "snapshot": snapshots.snapshot, "delsnapshot": snapshots.delete}
    if name in acts:
        return acts[name](vmid, parsed, settings)
    if name == "unlock":
        return config.unlock(vmid, settings)
    sys.stdout.write(answer(name, vmid, parsed, config.read(vmid)))
    return 0


def answer(name: str, vmid: int, parsed: words.Parsed, found: config.Config) -> str:
    """What the commands print that only read."""
    if name == "listsnapshot":
        return snapshots.tree(found)
    if name == "config":
        wanted = parsed.options.get("snapshot")
        if wanted is not None and wanted not in found.snapshots:
            raise Die(f"snapshot '{wanted}' does not exist")
        return config.show(found.keys if wanted is None else found.snapshots[wanted])
    if parsed.options.get("verbose") == "1":
        return verbose(vmid, found.keys)
    return f"status: {machine.status(vmid)}\n"


def attach(vmid: int, parsed: words.Parsed, environment: dict[str, str], settings: Settings) -> None:
    """Become lxc-attach (contract 4)."""
    if not parsed.rest:
        raise Die("missing command at /usr/share/perl5/PVE/CLI/pct.pm line 276.")
    config.read(vmid)
    if not machine.running(vmid):
        raise Die(f"container '{vmid}' not running!")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        environment.pop(name, None)
    keep = "--clear-env" if parsed.options.get("keep-env") == "0" else "--keep-env"
    flags = [keep] if settings.keep_env else []
    try:
        os.execvpe("lxc-attach", ["lxc-attach", "-n", str(vmid), *flags, "--", *parsed.rest], environment)
    except OSError as error:
        raise Die(f"exec failed: {error.strerror}", errno.ENOENT) from error


def list_all() -> int:
    """The table (contract 6); no header when there is no container."""
    row = "%-10s %-10s %-12s %-20s"
    vmids = config.vmids()
    if vmids:
        print(row % ("VMID", "Status", "Lock", "Name"))
    for vmid in vmids:
        keys = config.read(vmid).keys
        print(row % (vmid, machine.status(vmid), keys.get("lock", ""), keys.get("hostname", f"CT{vmid}")))
    return 0


def verbose(vmid: int, keys: dict[str, str]) -> str:
    """`status --verbose`; what the lab does not measure is 0."""
    found = dict.fromkeys(("cpu", "disk", "diskread", "diskwrite", "mem", "netin", "netout", "swap", "uptime"), "0")
    found |= {"cpus": keys.get("cores", "1"), "name": keys.get("hostname", f"CT{vmid}"), "type": "lxc", "vmid": str(vmid)}
    found |= {"maxmem": str(int(keys.get("memory", "512")) << 20), "maxswap": str(int(keys.get("swap", "512")) << 20)}
    found |= {"maxdisk": str(8 << 30), "status": machine.status(vmid)}
    if "lock" in keys:
        found["lock"] = keys["lock"]
    if machine.running(vmid):
        found["pid"] = str(machine.init_pid(vmid))
    return "".join(f"{key}: {found[key]}\n" for key in sorted(found))
