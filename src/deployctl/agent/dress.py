"""Owner, group and mode of a file that is brought: what was asked for, else those of the file that it replaces.

Names are those of the target. Without a mode the source's right to be executed is kept.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .faults import Refused

ACL = "system.posix_acl_access"  # Source: acl(5), xattr(7)
_CLAUSE = re.compile(r"([ugoa]*)([-+=])([rwxXst]*)")
_WHO = {"u": 0o4700, "g": 0o2070, "o": 0o0007}
_PLAIN = {"r": 0o444, "w": 0o222, "x": 0o111, "s": 0o6000}


class Wish(NamedTuple):
    """What the playbook asks for: ids, and a mode as it is written there. login_group: that of the owner, for files that are new."""

    owner: Optional[int]
    group: Optional[int]
    mode: Optional[str]
    login_group: Optional[int]


def wish_of(request: Dict[str, Any]) -> Wish:
    """The wish of a request's `owner`, `group` and `mode`. Raises Refused for a name that the target does not know, or may not be given."""
    owner, login_group = _user(request.get("owner"))
    group = _group(request.get("group"))
    own = os.geteuid()
    if own != 0:
        if owner is not None and owner != own:
            raise Refused("only root may give a file to another user", where="push: owner", todo="log in as root, or leave `owner` out")
        if group is not None and group not in (os.getegid(), *os.getgroups()):
            raise Refused("uid %d is not in that group" % own, where="push: group", todo="log in as root, or leave `group` out")
    for number, kind in ((owner, "uid"), (group, "gid")):
        if number is not None and not _mapped(number, "/proc/self/%s_map" % kind):
            raise Refused("%s %d does not exist in this container" % (kind, number), where="push", todo="take an id that is mapped there")
    return Wish(owner, group, request.get("mode"), login_group)


def _user(text: Optional[str]) -> Tuple[Optional[int], Optional[int]]:
    if text is None:
        return None, None
    if text.isdigit():
        try:
            return int(text), pwd.getpwuid(int(text)).pw_gid
        except KeyError:
            return int(text), None
    try:
        entry = pwd.getpwnam(text)
    except KeyError as error:
        raise Refused("the target has no user '%s'" % text, where="push: owner", todo="correct `owner`, or make it there") from error
    return entry.pw_uid, entry.pw_gid


def _group(text: Optional[str]) -> Optional[int]:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    try:
        return grp.getgrnam(text).gr_gid
    except KeyError as error:
        raise Refused("the target has no group '%s'" % text, where="push: group", todo="correct `group`, or make it there") from error


def _mapped(number: int, path: str) -> bool:
    """Whether the id exists in this user namespace. Source: user_namespaces(7)."""
    try:
        with open(path) as lines:
            ranges = [tuple(map(int, line.split())) for line in lines]
    except OSError:
        return True
    return any(first <= number < first + count for first, _, count in ranges)


def due(old: Optional[os.stat_result], wish: Wish, executable: bool) -> Tuple[int, int, int]:
    """(uid, gid, mode) that a file should have; old is the one that it replaces."""
    if old is None:
        new_group = os.getegid() if wish.login_group is None else wish.login_group
        uid, gid, base = os.geteuid(), new_group, 0o644
    else:
        uid, gid, base = old.st_uid, old.st_gid, stat.S_IMODE(old.st_mode)
    if executable:
        base |= (base & 0o444) >> 2
    mode = base if wish.mode is None else apply(wish.mode, base)
    return uid if wish.owner is None else wish.owner, gid if wish.group is None else wish.group, mode


def fits(seen: os.stat_result, wish: Wish, executable: bool) -> bool:
    """Whether a file is what it should be already."""
    return (seen.st_uid, seen.st_gid, stat.S_IMODE(seen.st_mode)) == due(seen, wish, executable)


def put_on(handle: int, live: str, wish: Wish, executable: bool) -> None:
    """Gives an open file of ours its owner, group and mode, in this order: a change of owner takes special bits away.

    Without a mode it gets the access list of the file that it replaces: without it the mode of that one would give its group too much.
    """
    try:
        old: Optional[os.stat_result] = os.stat(live)
    except OSError:
        old = None
    uid, gid, mode = due(old, wish, executable)
    if old is None and wish.group is None:
        gid = _group_of_directory(os.path.dirname(live), gid)
    if wish.owner is None and os.geteuid() != 0:
        uid = os.geteuid()  # in a directory that a group shares one member replaces the file of another (obstacles.py)
    seen = os.fstat(handle)
    if (seen.st_uid, seen.st_gid) != (uid, gid):
        os.fchown(handle, uid, gid)
    os.fchmod(handle, mode)
    if old is not None and wish.mode is None:
        try:
            os.setxattr(handle, ACL, os.getxattr(live, ACL))
        except OSError:
            pass  # it has none, or the file system knows none


def _group_of_directory(directory: str, otherwise: int) -> int:
    """The group that a directory gives to new files (its set-group-ID bit), or what stands for it."""
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    seen = os.stat(directory)
    return seen.st_gid if seen.st_mode & stat.S_ISGID else otherwise


def apply(text: str, base: int) -> int:
    """The mode that "0644" or "u=rw,go-w" makes of another one; without a letter before the sign it is for all. Source: chmod(1)."""
    if text.isdigit():
        return int(text, 8)
    for clause in text.split(","):
        found = _CLAUSE.fullmatch(clause)
        assert found is not None, text  # the playbook was looked at
        who = found[1].replace("a", "ugo") or "ugo"
        mask = sum({_WHO[letter] for letter in who})
        bits = 0
        for letter in found[3]:
            if letter == "t":
                bits |= 0o1000
            elif letter == "X":
                bits |= _PLAIN["x"] & mask if base & 0o111 else 0
            else:
                bits |= _PLAIN[letter] & mask
        if found[2] == "=":
            base &= ~(mask | (0o1000 if "o" in who else 0))
        base = base & ~bits if found[2] == "-" else base | bits
    return base
