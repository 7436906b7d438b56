"""OpenSSH's known_hosts files: which keys a host is known by. Opens no connection and adds nothing.

paramiko's own reader knows neither patterns nor markers, keeps one key of a type, and stops at a line that it cannot decode.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deployctl.errors import TransportError
from deployctl.transports.ssh_config import Route


@dataclass(frozen=True)
class KnownKey:
    """One line that speaks of a host."""

    kind: str  # ssh-ed25519, ssh-rsa, …
    blob: bytes
    place: str  # file:line
    revoked: bool


def known_keys(route: Route) -> list[KnownKey]:
    """The keys that the host of a route is known by, in the order of the files. Raises TransportError for an unreadable file.

    A host on another port than 22 that is nowhere as [host]:port may be known by its bare name, as in OpenSSH.
    Source: sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
    """
    hostname = route.hostname.lower()
    bare = [route.known_as.lower() or hostname]
    names = bare if route.known_as or route.port == 22 else [f"[{hostname}]:{route.port}", hostname]
    for name in names:
        if keys := [key for path in route.known_hosts for key in _keys_of(path, name)]:
            return keys
    return []


def fingerprint(blob: bytes) -> str:
    """SHA256:… as ssh-keygen -l prints it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def algorithms(keys: Iterable[KnownKey], offered: Iterable[str]) -> list[str]:
    """The host key algorithms that are offered, those of stored keys first: a host with two keys shows one that is known."""
    wanted = {kind for key in keys for kind in ([key.kind] if key.kind != "ssh-rsa" else ["rsa-sha2-512", "rsa-sha2-256"])}
    return sorted(offered, key=lambda name: name not in wanted)


def _keys_of(path: Path, name: str) -> Iterator[KnownKey]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise TransportError(f"cannot be read: {error.strerror}", where=str(path), todo="mend its owner and mode") from error
    for number, line in enumerate(lines, 1):
        fields = line.split()
        marker = fields.pop(0) if fields and fields[0].startswith("@") else ""
        if len(fields) < 3 or fields[0].startswith("#") or marker not in ("", "@revoked") or not _matches(fields[0], name):
            continue
        try:
            yield KnownKey(fields[1], base64.b64decode(fields[2], validate=True), f"{path}:{number}", bool(marker))
        except binascii.Error:
            continue


def _matches(patterns: str, name: str) -> bool:
    if patterns.startswith("|1|"):
        return _matches_hash(patterns, name)
    found = False
    for pattern in patterns.lower().split(","):
        glob = re.escape(pattern.removeprefix("!")).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(glob, name):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _matches_hash(text: str, name: str) -> bool:
    try:
        salt, digest = (base64.b64decode(part) for part in text.split("|")[2:4])
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), "sha1").digest(), digest)
