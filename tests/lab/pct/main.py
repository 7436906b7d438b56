"""`pct`: which command was meant, and the commands that write nothing.

Runs by `/usr/bin/python3 -I` with the standard library only. "contract" in comments is the pct contract, with its section.
"""

import errno
import os
import sys
import time

from . import locales, machine, push, words
from .machine import Die

VMID = ("vmid", "vmid")
COMMANDS = {
    "config": words.Syntax("config", (VMID,), {"current": "boolean", "snapshot": "string"}, "<vmid> [OPTIONS]"),
    "exec": words.Syntax("exec", (VMID,), {"keep-env": "boolean"}, "<vmid> [<extra-args>] [OPTIONS]", rest=True),
    "list": words.Syntax("list", (), {}, ""),
    "push": words.Syntax(
        "push",
        (VMID, ("file", "string"), ("destination", "string")),
        {"user": "string", "group": "string", "perms": "string"},
        "<vmid> <file> <destination> [OPTIONS]",
    ),
    "status": words.Syntax("status", (VMID,), {"verbose": "boolean"}, "<vmid> [OPTIONS]"),
}
ABSENT = (
    "clone", "cpusets", "create", "delsnapshot", "destroy", "df", "enter", "fsck", "fstrim", "help", "listsnapshot", "migrate", "mount",
    "pending", "pull", "reboot", "rescan", "resize", "restore", "resume", "rollback", "set", "shutdown", "snapshot", "start", "stop",
    "suspend", "template", "unlock", "unmount",
)  # fmt: skip


def main() -> None:
    """Note the call, then act as pct does."""
    environment = machine.environment()  # as we were called, before this interpreter touched it
    arguments = [os.fsencode(word) for word in sys.argv[1:]]
    machine.note_call(arguments)
    if os.geteuid():
        refuse_user()
    settings = machine.settings()
    time.sleep(settings.delay)  # what Perl takes to load the real one
    environment["PATH"] = os.environ["PATH"] = "/sbin:/bin:/usr/sbin:/usr/bin"
    utf8 = locales.is_utf8(environment)
    decoded = [locales.decode(word, utf8) for word in arguments]
    name = command(decoded)
    try:
        parsed = words.parse(COMMANDS[name], decoded[1:])
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


def refuse_user() -> None:
    """Who is not root (contract 2)."""
    for number in (1, 2, 3):
        sys.stderr.write(f"ipcc_send_rec[{number}] failed: Unknown error -1\n")
    sys.stderr.write("Unable to load access control list: Unknown error -1\n")
    sys.exit(255)


def run(name: str, parsed: words.Parsed, environment: dict[str, str], settings: machine.Settings) -> int:
    """Carry the command out; returns the exit status."""
    if name == "list":
        return list_all()
    vmid = int(parsed.arguments["vmid"])
    if name == "exec":
        attach(vmid, parsed, environment)
    if name == "push":
        return push.push(vmid, parsed, settings)
    config = machine.config(vmid)
    if name == "config":
        sys.stdout.write(show(config))
    elif parsed.options.get("verbose") == "1":
        sys.stdout.write(verbose(vmid, config))
    else:
        print(f"status: {machine.status(vmid)}")
    return 0


def attach(vmid: int, parsed: words.Parsed, environment: dict[str, str]) -> None:
    """Become lxc-attach (contract 4)."""
    if not parsed.rest:
        raise Die("missing command at /usr/share/perl5/PVE/CLI/pct.pm line 276.")
    machine.config(vmid)
    if not machine.running(vmid):
        raise Die(f"container '{vmid}' not running!")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        environment.pop(name, None)
    keep = "--clear-env" if parsed.options.get("keep-env") == "0" else "--keep-env"
    try:
        os.execvpe("lxc-attach", ["lxc-attach", "-n", str(vmid), keep, "--", *parsed.rest], environment)
    except OSError as error:
        raise Die(f"exec failed: {error.strerror}", errno.ENOENT) from error


def list_all() -> int:
    """The table (contract 6); no header when there is no container."""
    row = "%-10s %-10s %-12s %-20s"
    vmids = machine.vmids()
    if vmids:
        print(row % ("VMID", "Status", "Lock", "Name"))
    for vmid in vmids:
        config = machine.config(vmid)
        print(row % (vmid, machine.status(vmid), config.get("lock", ""), config.get("hostname", f"CT{vmid}")))
    return 0


def show(config: dict[str, str]) -> str:
    """The configuration: sorted keys, raw lxc lines last (contract 6)."""
    keys = sorted(key for key in config if not key.startswith("lxc."))
    return "".join(f"{key}: {config[key]}\n" for key in [*keys, *(key for key in config if key.startswith("lxc."))])


def verbose(vmid: int, config: dict[str, str]) -> str:
    """`status --verbose`; what the lab does not measure is 0."""
    found = dict.fromkeys(("cpu", "disk", "diskread", "diskwrite", "mem", "netin", "netout", "swap", "uptime"), "0")
    found |= {"cpus": config.get("cores", "1"), "name": config.get("hostname", f"CT{vmid}"), "type": "lxc", "vmid": str(vmid)}
    found |= {"maxmem": str(int(config.get("memory", "512")) << 20), "maxswap": str(int(config.get("swap", "512")) << 20)}
    found |= {"maxdisk": str(8 << 30), "status": machine.status(vmid)}
    if "lock" in config:
        found["lock"] = config["lock"]
    if machine.running(vmid):
        found["pid"] = str(machine.init_pid(vmid))
    return "".join(f"{key}: {found[key]}\n" for key in sorted(found))
