"""How a host is reached: the words of the hosts file, read through the user's ssh_config by `ssh -G`. Opens no connection."""

from __future__ import annotations

import getpass
import os
import re
import shlex
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from deployctl.errors import TransportError

CONNECT_TIMEOUT = 10.0  # seconds, where the ssh_config says nothing
_WORDS = re.compile(r"(?:(?P<user>[^@]+)@)?(?:\[(?P<literal>[^\]]+)\]|(?P<name>[^:\[\]]+|[0-9a-fA-F:.]+))(?::(?P<port>\d{1,5}))?")

_WITHOUT_OPENSSH = {
    "identityfile": ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"],
    "userknownhostsfile": ["~/.ssh/known_hosts"],
    "globalknownhostsfile": ["/etc/ssh/ssh_known_hosts"],
}


class HostSpec(Protocol):
    """A host of the hosts file: `ssh` is [user@]name[:port] or an alias; without `ssh_config` the user's own file is read."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def ssh(self) -> str:
        """Where ssh goes."""

    @property
    def ssh_config(self) -> Path | None:
        """What `ssh -F` takes."""


@dataclass(frozen=True)
class Route:
    """Everything that is needed to reach and to know a host."""

    hostname: str
    port: int
    user: str
    known_as: str = ""  # HostKeyAlias
    known_hosts: tuple[Path, ...] = ()
    identities: tuple[Path, ...] = ()
    identities_only: bool = False
    use_agent: bool = True
    connect_timeout: float = CONNECT_TIMEOUT
    words: tuple[str, ...] = ()  # what `ssh` takes to go the same way

    @property
    def place(self) -> str:
        """host:port, for messages."""
        return f"[{self.hostname}]:{self.port}" if ":" in self.hostname else f"{self.hostname}:{self.port}"

    @property
    def command(self) -> str:
        """The ssh command that a person types to get there: by the name as it was written, so that its block of the ssh_config holds."""
        return shlex.join(["ssh", *self.words])


def resolve(host: HostSpec) -> Route:
    """The route to a host. `ssh -G` starts what a `Match exec` of the ssh_config names. Raises TransportError."""
    words = _WORDS.fullmatch(host.ssh)
    if not words or host.ssh.startswith("-"):
        raise TransportError(f"'{host.ssh}' is no ssh address", where=host.name, todo="write [user@]name[:port] or an alias")
    alias = words["literal"] or words["name"]
    user, port = words["user"], words["port"]
    config = ("-F", str(host.ssh_config)) if host.ssh_config else ()
    typed = (*config, *(("-p", port) if port else ()), f"{user}@{alias}" if user else alias)
    if shutil.which("ssh"):
        settings = _ask_openssh(host, typed)
    elif host.ssh_config:
        raise TransportError(f"'{host.ssh_config}' cannot be read: there is no ssh here", where=host.name, todo="install OpenSSH's client")
    else:
        settings = {"user": [user or getpass.getuser()], "port": [port or "22"], **_WITHOUT_OPENSSH}
    return _route(host, alias, settings, typed)


def _ask_openssh(host: HostSpec, typed: tuple[str, ...]) -> dict[str, list[str]]:
    """What `ssh -G` prints: each keyword with its values. Source: ssh(1), -G."""
    *options, name = typed
    try:
        argv = ["ssh", "-G", "-T", *options, "--", name]
        done = subprocess.run(argv, capture_output=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TransportError(f"`ssh -G {name}` failed: {error}", where=host.name) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing"]
        raise TransportError(f"ssh cannot read its configuration: it said '{said[-1]}'", where=host.name, todo="mend that file")
    settings: dict[str, list[str]] = {}
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        keyword, _, value = line.partition(" ")
        settings.setdefault(keyword, []).append(value)
    return settings


def _route(host: HostSpec, alias: str, settings: dict[str, list[str]], typed: tuple[str, ...]) -> Route:
    def one(keyword: str, default: str = "") -> str:
        return settings.get(keyword, [default])[0]

    for keyword in ("proxyjump", "proxycommand"):
        if (way := one(keyword, "none")) != "none":
            todo = "choose a host that is reached directly"
            raise TransportError(f"'{keyword} {way}' in the ssh_config is not supported yet", where=host.name, todo=todo)
    hostname, port, user = one("hostname", alias), one("port"), one("user")
    known_as = one("hostkeyalias")
    tokens = {"%": "%", "d": str(Path.home()), "h": hostname, "i": str(os.getuid()), "l": socket.gethostname(), "n": alias, "p": port}
    tokens |= {"L": socket.gethostname().split(".")[0], "r": user, "u": getpass.getuser()}
    tokens["k"] = known_as = expand(known_as, tokens, host.name) or hostname
    known = [name for keyword in ("userknownhostsfile", "globalknownhostsfile") for name in one(keyword).split() if name != "none"]
    identities = [name for name in settings.get("identityfile", []) if name != "none"]
    timeout = one("connecttimeout", "none")
    return Route(
        hostname=hostname,
        port=int(port),
        user=user,
        known_as=known_as if one("hostkeyalias") else "",
        known_hosts=tuple(Path(expand(name, tokens, host.name)) for name in known),
        identities=tuple(Path(expand(name, tokens, host.name)) for name in identities),
        identities_only=one("identitiesonly") == "yes",
        use_agent=one("identityagent") != "none",
        connect_timeout=float(timeout) if timeout.isdigit() and timeout != "0" else CONNECT_TIMEOUT,
        words=typed,
    )


def expand(text: str, tokens: dict[str, str], where: str) -> str:
    """~, %tokens and ${VARIABLES}: `ssh -G` leaves them in identity files and host key aliases. Raises TransportError for an unknown one.

    Source: ssh_config(5), TOKENS and ENVIRONMENT VARIABLES.
    """

    def value(match: re.Match[str]) -> str:
        found = tokens.get(match[1]) if match[1] else os.environ.get(match[2])
        if found is None:
            raise TransportError(f"'{match[0]}' in '{text}' is not known here", where=where, todo="write it out in the ssh_config")
        return found

    return str(Path(re.sub(r"%(.)|\$\{(\w+)\}", value, text)).expanduser()) if text else ""
