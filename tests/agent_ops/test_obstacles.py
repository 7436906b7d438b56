"""What would make going live fail is seen before: mounts, read-only and foreign things. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.agent import dress, listing, obstacles, place, state
from deployctl.agent.faults import Refused
from tests.agent_ops import forked, write


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(Refused) as caught:
        act()
    return f"{caught.value.where}: {caught.value.what}"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[str]:
    """A destination with a.py and sub/b.py; what is mounted below it is unmounted in the end."""
    home = str(tmp_path / "live")
    write(home + "/a.py", b"a")
    write(home + "/sub/b.py", b"b")
    yield home
    for path in sorted(obstacles.mount_points(), reverse=True):
        if path.startswith(str(tmp_path)):
            subprocess.run(["umount", "-l", path], check=True)


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], check=False, capture_output=True)
    if done.returncode:
        pytest.skip(f"nothing may be mounted here: {done.stderr.decode()}")


def test_a_file_that_something_is_mounted_on_is_refused(root: str) -> None:
    mount("--bind", root + "/sub/b.py", root + "/a.py")
    assert refused(lambda: obstacles.look_at_files(root, ["a.py"])) == f"{root}/a.py: something is mounted on it, so it cannot be replaced"
    obstacles.look_at_files(root, ["sub/b.py"])


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_directory_that_something_is_mounted_on_is_refused(root: str, kind: str) -> None:
    mount(*(["-t", "tmpfs", "tmpfs"] if kind == "tmpfs" else ["--bind", root + "/sub"]), root + "/sub")
    assert refused(lambda: obstacles.look_at_files(root, ["sub/new/c.py"])) == f"{root}/sub: another file system is mounted there"
    assert listing.below(root, (), lambda: None) == ["a.py"]


def test_a_destination_that_is_a_mount_point_works(root: str) -> None:
    mount("-t", "tmpfs", "tmpfs", root)
    write(root + "/sub/c.py", b"c")
    obstacles.look_at_root(root)
    obstacles.look_at_files(root, ["sub/c.py", "d.py"])


@pytest.mark.parametrize("kind", ["link", "foreign", "file"])
def test_a_place_that_somebody_else_made_is_not_used(root: str, kind: str, tmp_path: Path) -> None:
    ours = root + "/.deployctl"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        os.symlink(str(tmp_path / "elsewhere"), ours)
    elif kind == "foreign":
        os.mkdir(ours)
        os.chown(ours, 1234, 1234)
    else:
        write(ours, b"")
    said = refused(lambda: place.make(root, "20260101-000000-aaaa", state.Home(str(tmp_path / "state"), "train")))
    assert said == f"{ours}: it is no directory of uid 0"
    assert not (tmp_path / "elsewhere").exists() or not os.listdir(tmp_path / "elsewhere")


def test_a_read_only_destination_is_refused(root: str) -> None:
    mount("-t", "tmpfs", "-o", "ro", "tmpfs", root)
    assert refused(lambda: obstacles.look_at_root(root)) == f"{root}: its file system is read-only"


FOREIGN = {
    "a directory that only root may write": (0o755, 0, 0o644, "uid 1234 may not write there"),
    "a file of another user": (0o777, 0, 0o666, "it belongs to uid 0, and uid 1234 cannot replace it as that"),
    "a file of another user in a sticky directory": (0o1777, 1234, 0o644, None),
}


@pytest.mark.parametrize(("directory", "owner", "mode", "what"), FOREIGN.values(), ids=FOREIGN.keys())
def test_what_another_user_may_not_replace_is_refused(root: str, directory: int, owner: int, mode: int, what: Any) -> None:
    os.chmod(root, directory)
    os.chown(root + "/a.py", owner, owner)
    os.chmod(root + "/a.py", mode)
    assert as_user(1234, root) == (what or "")


def test_a_member_of_a_group_replaces_the_file_of_another_and_uses_its_place(root: str, tmp_path: Path) -> None:
    """What a group shares is a directory with the set-group-ID bit that the group may write."""
    os.chown(root, 1000, 1234)
    os.chmod(root, 0o2770)
    os.chown(root + "/a.py", 1000, 1234)
    os.chmod(root + "/a.py", 0o660)
    assert as_user(1234, root) == ""
    os.chmod(root + "/a.py", 0o600)
    assert as_user(1234, root) == "uid 1234 may make no hard link of it"
    made = place.make(root, "20260101-000000-aaaa", state.Home(str(tmp_path / "state"), "train"))
    os.chown(made.home, 1000, 1234)
    place.make(root, "20260102-000000-aaaa", state.Home(str(tmp_path / "state"), "train"))
    assert oct(os.stat(made.home).st_mode & 0o7777) == oct(0o2770)


def as_user(uid: int, root: str) -> str:
    """What a process of that user hears of a.py in root, which it reaches through its working directory."""
    listens, tells = os.pipe()

    def look() -> None:
        os.chdir(root)
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        try:
            obstacles.look_at_root(".")
            obstacles.look_at_files(".", ["a.py"], keeps_owner=True)
        except Refused as fault:
            os.write(tells, fault.what.encode())

    assert forked(look) == 0
    os.close(tells)
    with os.fdopen(listens) as words:
        return words.read()


MODES = [
    ("0644", 0o755, 0o644),
    ("4750", 0o600, 0o4750),
    ("u=rw,go=r", 0o777, 0o644),
    ("a+x", 0o644, 0o755),
    ("+x", 0o600, 0o711),
    ("go-w", 0o666, 0o644),
    ("u=rwX,go=rX", 0o700, 0o755),
    ("u=rwX,go=rX", 0o600, 0o644),
    ("u+s,g+s", 0o755, 0o6755),
    ("o=", 0o757, 0o750),
    ("ug-x,o+t", 0o755, 0o1645),
    ("=", 0o4777, 0o000),
]


@pytest.mark.parametrize(("text", "base", "expected"), MODES)
def test_a_symbolic_mode_is_what_chmod_makes_of_it(text: str, base: int, expected: int, tmp_path: Path) -> None:
    file = write(str(tmp_path / "f"), b"")
    os.chmod(file, base)
    subprocess.run(["sh", "-c", 'umask 0; exec chmod -- "$@"', "sh", text, file], check=True)
    assert oct(os.stat(file).st_mode & 0o7777) == oct(expected)
    assert oct(dress.apply(text, base)) == oct(expected)


def test_an_id_that_is_not_mapped_is_refused(tmp_path: Path) -> None:
    assert not dress._mapped(200000, write(str(tmp_path / "map"), b"0 100000 65536\n"))
    assert dress._mapped(65535, str(tmp_path / "map"))
