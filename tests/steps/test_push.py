"""push: files come whole and all together, or nothing of them is seen."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import os
import pwd
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployctl.errors import AgentError, DeployError, RefusedError, WordsError
from deployctl.steps.push import Push, Staged
from tests.steps import RUN, Talk, opened, refusal, refused, said, setting, steps_of, until

NAMES = (
    "with space.py",
    "two\nlines.py",
    'it\'s "quoted".py',
    "$HOME;`id`.py",
    "größe-日本.py",
    "-dash.py",
    "deep/er/est.py",
    "\udce9.bin",
)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A session whose destination is `live`."""
    made = Talk(tmp_path)
    yield made
    made.close()


def push(home: Path, **fields: Any) -> Push:
    return Push.model_validate({"from": str(home), "to": "/srv/a", **fields})


def paths(home: Path, **fields: Any) -> list[str]:
    return [source.path for source in push(home, **fields).find(home)]


def tree(home: Path, *names: str) -> Path:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    return home


# --- the model


def test_a_push_is_its_keys(tmp_path: Path) -> None:
    [step] = steps_of(tmp_path, "  - push: {from: ../train, to: /srv/a, include: ['*.py'], exclude: [tests/]}\n")
    assert step == Push.model_validate({"from": "../train", "to": "/srv/a", "include": ["*.py"], "exclude": ["tests/"]})
    assert step.describe() == {"step": "push", "from": "../train", "to": "/srv/a", "include": ["*.py"], "exclude": ["tests/"]}


@pytest.mark.parametrize(
    ("steps", "line", "what"),
    [
        ("  - push:\n      from: a\n      to: srv\n", 9, "push: to: 'srv' is no absolute path"),
        ("  - push:\n      to: /a\n", 7, "push: 'from' is missing"),
        ("  - push: {from: a, to: /a, source: b}\n", 7, "push: 'source' is no key of push"),
        ("  - push:\n      from: a\n      to: /a\n      include: '*.py'\n", 10, "push: include: wants a list, not '*.py'"),
        ("  - push\n", 7, "push: 'from' is missing"),
        ("  - push: /srv/a\n", 7, "push: wants a map of keys and values, not '/srv/a'"),
        ("  - push: {from: '', to: /a}\n", 7, "push: from: the text is empty"),
        ("  - push: {from: [], to: /a}\n", 7, "push: from: the list is empty"),
        ("  - push:\n      from: a\n      to: /a\n      mode: 644\n", 10, "push: mode: '644' is a number, and a mode is octal"),
        ("  - push:\n      from: a\n      to: /a\n      mode: '0888'\n", 10, "push: mode: '0888' is no mode"),
        ("  - push:\n      from: a\n      to: /a\n      mode: u+rwz\n", 10, "push: mode: 'u+rwz' is no mode"),
        ("  - push:\n      from: a\n      to: /a\n      delete: true\n", 10, "push: `delete` needs `include`"),
        ("  - push: {from: a, to: /a, delete: 'yes'}\n", 7, "push: delete: wants true or false, not 'yes'"),
        ("  - push: {from: a, to: /a, via: scp}\n", 7, "push: via: 'scp' is not 'push' or 'session'"),
    ],
)
def test_a_faulty_push_is_refused_in_its_line(tmp_path: Path, steps: str, line: int, what: str) -> None:
    assert refusal(tmp_path, steps)[:2] == (line, what)


# --- what it finds on the controller


def test_without_patterns_every_file_goes(tmp_path: Path) -> None:
    assert paths(tree(tmp_path, "a.py", "sub/b.txt", ".hidden")) == [".hidden", "a.py", "sub/b.txt"]


def test_exclude_wins_over_include(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "a.txt", "tests/b.py", "sub/tests/c.py", "sub/d.py")
    assert paths(tmp_path, include=["*.py"], exclude=["tests/"]) == ["a.py", "sub/d.py"]


def test_a_pattern_with_a_slash_is_bound_to_the_source(tmp_path: Path) -> None:
    assert paths(tree(tmp_path, "a.py", "sub/a.py"), include=["/a.py"]) == ["a.py"]


def test_an_exclamation_mark_takes_a_file_back_in(tmp_path: Path) -> None:
    assert paths(tree(tmp_path, "a.log", "keep.log"), exclude=["*.log", "!keep.log"]) == ["keep.log"]


def test_pycache_and_our_own_place_never_go(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "__pycache__/a.pyc", ".deployctl/x/new/a.py")
    assert paths(tmp_path, exclude=["!__pycache__/"]) == ["a.py"]


def test_a_single_file_goes_under_its_name(tmp_path: Path) -> None:
    tree(tmp_path, "sub/a.py")
    assert paths(tmp_path / "sub" / "a.py", include=["*.txt"]) == ["a.py"]


def test_a_link_to_a_file_goes_as_that_file(tmp_path: Path) -> None:
    (tree(tmp_path, "a.py") / "b.py").symlink_to("a.py")
    assert {source.path: source.sha256 for source in push(tmp_path).find(tmp_path)} == dict.fromkeys(
        ("a.py", "b.py"), hashlib.sha256(b"a.py").hexdigest()
    )


def test_a_link_in_a_circle_does_not_hang(tmp_path: Path) -> None:
    (tree(tmp_path, "sub/a.py") / "sub" / "loop").symlink_to("..")
    assert paths(tmp_path, include=["*.py"]) == ["sub/a.py"]


@pytest.mark.parametrize(("to", "what"), [(".", "a directory"), ("nowhere", "nothing"), ("/dev/null", "no regular file")])
def test_a_link_that_no_file_can_be_made_of_is_refused_and_not_left_out(tmp_path: Path, to: str, what: str) -> None:
    (tree(tmp_path, "a.py") / "link").symlink_to(to)
    error = refused(lambda: paths(tmp_path))
    assert str(error) == f"push: {tmp_path}/link: it is a symbolic link to {what}"
    assert paths(tmp_path, exclude=["link"]) == ["a.py"]


def test_a_pipe_is_refused_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tree(tmp_path, "a.py") / "pipe")
    assert "no regular file" in refused(lambda: paths(tmp_path)).what


def listed(home: Path, *words: str, **fields: Any) -> list[str]:
    step = Push.model_validate({"from": list(words), "to": "/srv/a", **fields})
    return [source.path for source in step.find(home)]


def test_a_list_brings_the_files_of_all(tmp_path: Path) -> None:
    tree(tmp_path, "one/a.py", "one/sub/b.py", "two/c.py", "d.txt")
    assert listed(tmp_path, "one", "two", "d.txt") == ["a.py", "c.py", "d.txt", "sub/b.py"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("one/*.py", ["a.py", "b.py"]),
        ("*/a.py", ["one/a.py", "two/a.py"]),
        ("one/**/*.py", ["a.py", "b.py", "sub/c.py"]),
        ("o*", ["one/a.py", "one/b.py", "one/d.txt", "one/sub/c.py"]),
        ("one/[ad]*", ["a.py", "d.txt"]),
    ],
)
def test_files_of_a_glob_keep_their_path_below_its_fixed_part(tmp_path: Path, glob: str, expected: list[str]) -> None:
    tree(tmp_path, "one/a.py", "one/b.py", "one/d.txt", "one/sub/c.py", "two/a.py")
    assert listed(tmp_path, glob) == expected


def test_a_name_with_a_wildcard_in_it_is_that_file(tmp_path: Path) -> None:
    assert listed(tree(tmp_path, "a*.py", "ab.py"), "a*.py") == ["a*.py"]


def test_two_sources_that_bring_one_path_are_wrong_words(tmp_path: Path) -> None:
    tree(tmp_path, "one/a.py", "two/a.py")
    with pytest.raises(WordsError, match=r"two sources bring 'a\.py'"):
        listed(tmp_path, "one", "two")
    assert listed(tmp_path, "one", "one/*.py") == ["a.py"]


@pytest.mark.parametrize("names", [("a.py", "A.py"), ("sub/a.py", "Sub/b.py"), ("gr\u00fcn.py", "gru\u0308n.py"), ("straße", "STRASSE")])
def test_names_that_differ_only_in_case_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    error = refused(lambda: paths(tree(tmp_path, *names)))
    assert isinstance(error, RefusedError)
    assert "differ only in case" in error.what


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree(tmp_path, "train/a.py")))
    assert [source.path for source in push(Path("~/train")).find(Path("/nowhere"))] == ["a.py"]


def test_a_source_that_does_not_exist_is_wrong_words(tmp_path: Path) -> None:
    error = refused(lambda: push(Path("train")).gather(setting(tmp_path)))
    assert isinstance(error, WordsError)
    assert (error.where, error.what) == (f"push: {tmp_path}/train", "'train' does not exist")


def test_patterns_that_leave_nothing_are_wrong_words(tmp_path: Path) -> None:
    with pytest.raises(WordsError, match="no file matches"):
        paths(tree(tmp_path, "a.py"), include=["*.txt"])


# --- compile


def test_staged_files_go_live_and_back() -> None:
    done = push(Path("/a")).compile(setting(), Staged("/srv/a", ("a.py", "b.py")))
    files = {"root": "/srv/a", "paths": ["a.py", "b.py"]}
    assert (done.do, done.undo) == (({"op": "golive", "sets": [files]},), ({"op": "goback", "sets": [files]},))


def test_nothing_staged_is_no_operation() -> None:
    done = push(Path("/a")).compile(setting(), Staged("/srv/a", ()))
    assert (done.do, done.undo) == ((), ())


# --- in a target


def test_only_files_that_differ_are_sent(talk: Talk) -> None:
    for name in ("same.py", "other.py"):
        talk.write(name)
    talk.write_live("same.py", b"new\n")
    talk.write_live("other.py", b"old\n")
    assert talk.push() == Staged(str(talk.live), ("other.py",))
    assert not talk.staged("same.py").exists()
    assert talk.contents() == {"same.py": b"new\n", "other.py": b"old\n"}
    [event] = said(talk.events, "staged")
    assert (event["files"], event["changed"], event["bytes"], event["destination"]) == (2, ["other.py"], 4, str(talk.live))


def test_when_nothing_differs_nothing_is_left_behind(talk: Talk) -> None:
    talk.write("a.py")
    talk.write_live("a.py", b"new\n")
    assert talk.push() == Staged(str(talk.live), ())
    assert [event["what"] for event in talk.events] == ["unchanged"]
    talk.close()
    assert os.listdir(talk.live) == ["a.py"]


def test_a_preview_names_what_would_go_and_leaves_no_trace(talk: Talk) -> None:
    talk.write("a.py")
    talk.write("b.py", b"123456")
    talk.write_live("a.py", b"new\n")
    step, plan = push(talk.train, to=str(talk.live)), setting(talk.home)
    assert step.preview(step.gather(plan), talk.session, plan, opened()) == {"files": 2, "changed": ["b.py"], "bytes": 6}
    assert os.listdir(talk.live) == ["a.py"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_arrives_as_it_is(talk: Talk, name: str) -> None:
    talk.write(name, name.encode("utf-8", "surrogateescape"))
    piece = talk.push()
    assert piece.files == (name,)
    assert talk.job({"op": "golive", "sets": [{"root": piece.root, "paths": list(piece.files)}]})[-1]["status"] == 0
    assert talk.contents() == {name: name.encode("utf-8", "surrogateescape")}


def test_every_byte_and_an_empty_file_arrive(talk: Talk) -> None:
    noise = random.Random(7).randbytes(3_000_001)
    talk.write("a.bin", noise)
    talk.write("b.empty", b"")
    talk.write("c.bin", bytes(range(256)))
    talk.push()
    assert talk.staged("a.bin").read_bytes() == noise
    assert talk.staged("b.empty").read_bytes() == b""
    assert talk.staged("c.bin").read_bytes() == bytes(range(256))


def test_a_file_that_becomes_empty_is_a_difference(talk: Talk) -> None:
    talk.write("a.py", b"")
    talk.write_live("a.py", b"old\n")
    assert talk.push().files == ("a.py",)


def ask_to_stage(talk: Talk, bundle: bytes, content: bytes = b"new\n", path: str = "a.py", **changes: Any) -> dict[str, Any]:
    """Stages `content` as one file from a bundle of those bytes."""
    there = talk.ask("place", root=str(talk.live))
    Path(there["incoming"]).write_bytes(bundle)
    file = {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "executable": False, **changes}
    return talk.ask("stage", root=str(talk.live), bundle=there["incoming"], packed=1, files=[file])


WHOLE = gzip.compress(b"new\n")


@pytest.mark.parametrize(
    ("bundle", "what"),
    [
        (gzip.compress(b"ne"), "a.py ends 2 bytes early"),
        (WHOLE[: len(WHOLE) // 2], "did not arrive whole"),
        (b"", "a.py ends 4 bytes early"),
        (gzip.compress(b"NEW\n"), "the bytes that arrived have another hash"),
        (gzip.compress(b"new\nmore"), "the bundle is longer than it should be"),
        (WHOLE + b"rubbish", "the bundle is longer than it should be"),
        (WHOLE[:-8] + b"\0" * 8, "did not arrive whole"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 40, "did not arrive whole"),
        (b"no gzip at all", "did not arrive whole"),
    ],
    ids=["short", "torn", "empty", "other", "long", "tail", "crc", "deflate", "plain"],
)
def test_a_broken_bundle_changes_nothing_and_leaves_nothing(talk: Talk, bundle: bytes, what: str) -> None:
    talk.write_live("a.py")
    with pytest.raises(AgentError, match=what):
        ask_to_stage(talk, bundle)
    talk.close()
    assert {path.name: path.read_bytes() for path in talk.live.iterdir()} == {"a.py": b"old\n"}


def test_a_bundle_that_never_came_is_an_error(talk: Talk) -> None:
    there = talk.ask("place", root=str(talk.live))
    with pytest.raises(AgentError, match="did not arrive whole"):
        talk.ask("stage", root=str(talk.live), bundle=there["incoming"], packed=0, files=[])


@pytest.mark.parametrize("path", ["../a.py", "/a.py", "sub/../../a.py", ".deployctl/a.py", "sub/.deployctl/a.py"])
def test_a_path_that_leaves_the_destination_is_refused(talk: Talk, path: str) -> None:
    with pytest.raises(AgentError, match="leaves the destination"):
        ask_to_stage(talk, WHOLE, path=path)
    with pytest.raises(RefusedError, match=r"leaves the destination|'\.deployctl' is the name of our own directory"):
        talk.ask("manifest", root=str(talk.live), files=[{"path": path, "size": 1, "executable": False}])
    assert not (talk.home / "a.py").exists()


def test_a_name_that_begins_with_two_dots_stays_inside(talk: Talk) -> None:
    talk.write("..a.py")
    assert talk.push().files == ("..a.py",)


def test_the_bundle_is_gone_when_it_was_unpacked(talk: Talk) -> None:
    talk.write("a.py")
    talk.push()
    assert sorted(os.listdir(talk.live / ".deployctl" / RUN)) == ["about.json", "new"]


# --- via session


@pytest.mark.parametrize("via", ["push", "session"])
def test_many_files_arrive_whole_each_way(talk: Talk, via: str) -> None:
    noise = random.Random(8)
    contents = {f"d{number % 5}/f{number}": noise.randbytes(noise.choice([0, 1, 700, 5000, 300_000])) for number in range(40)}
    contents |= {f"t{number}.txt": b"a line of text\n" * number * 100 for number in range(20)}
    for path, content in contents.items():
        talk.write(path, content)
    talk.golive(talk.push(via=via))
    assert talk.contents() == contents
    [event] = said(talk.events, "staged")
    assert 0 < event["sent"] < event["bytes"]


def test_a_file_that_changes_on_its_way_is_refused_and_the_talk_goes_on(talk: Talk) -> None:
    file, step, plan = talk.write("a.py", b"x" * 2_000_000), push(talk.train, to=str(talk.live), via="session"), setting(talk.home)
    gathered = step.gather(plan)
    file.write_bytes(b"x" * 1_500_000)
    with pytest.raises(RefusedError, match="it changed while it was read"):
        step.prepare(gathered, talk.session, plan, opened(), talk.record)
    assert talk.ask("place", root=str(talk.live))["incoming"]
    talk.close()
    assert os.listdir(talk.live) == []


def test_what_the_agent_refuses_is_not_sent_to_its_end(talk: Talk) -> None:
    talk.write_live("sub")  # a file, where a directory must be staged; nobody looked
    talk.ask("place", root=str(talk.live))
    (talk.live / ".deployctl" / RUN / "new").write_bytes(b"in the way")
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(2000):
            sent += 1
            yield bytes(1 << 18)

    file = {"path": "sub/a", "size": 2000 << 18, "sha256": "", "executable": False}
    with pytest.raises(AgentError, match="did not arrive whole"):
        talk.session.feed("stage", pieces(), root=str(talk.live), bundle=None, packed=0, files=[file])
    assert sent < 1000


@pytest.mark.parametrize("via", ["push", "session"])
def test_holes_stay_holes_and_memory_stays_flat(talk: Talk, via: str) -> None:
    size = 100_000_001
    with talk.write("big", b"head").open("r+b") as file:
        file.truncate(size)
        file.seek(size - 4)
        file.write(b"tail")
    before = peak(talk)
    talk.push(via=via)
    staged = talk.staged("big")
    assert (staged.stat().st_size, staged.stat().st_blocks * 512 < 8_000_000) == (size, True)
    with staged.open("rb") as stream:
        assert stream.read(6) == b"head\0\0"
        stream.seek(-6, os.SEEK_END)
        assert stream.read() == b"\0\0tail"
    assert peak(talk) - before < 30_000


def peak(talk: Talk) -> int:
    """The most memory that the agent has had, in kB."""
    status = Path(f"/proc/{talk.session._channel._child.pid}/status").read_text()  # type: ignore[attr-defined]
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


# --- room


@pytest.fixture
def small(talk: Talk) -> Iterator[Talk]:
    """The destination is a file system of 2 MiB and 40 inodes."""
    command = ["mount", "-t", "tmpfs", "-o", "size=2m,nr_inodes=40", "tmpfs", str(talk.live)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    yield talk
    subprocess.run(["umount", "-l", str(talk.live)], check=True)


def test_a_destination_without_room_is_refused_before_anything_is_sent(small: Talk) -> None:
    small.write_live("a.bin")
    small.write("a.bin", random.Random(9).randbytes(3_000_000))
    error = refused(small.push)
    assert isinstance(error, RefusedError)
    assert error.what.startswith("3.0 MB are needed there, 2.")
    small.close()
    assert small.contents() == {"a.bin": b"old\n"}
    assert os.listdir(small.live) == ["a.bin"]


def test_a_preview_says_that_there_is_no_room(small: Talk) -> None:
    small.write("a.bin", random.Random(9).randbytes(3_000_000))
    step, plan = push(small.train, to=str(small.live)), setting(small.home)
    assert "are needed there" in refused(lambda: step.preview(step.gather(plan), small.session, plan, opened())).what
    assert os.listdir(small.live) == []


def test_a_full_temporary_directory_of_this_machine_is_named(small: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small.live))
    small.write("a.bin", random.Random(9).randbytes(3_000_000))
    to = small.home / "to"
    error = refused(lambda: small.push(to=str(to)))
    assert str(error) == f"push: {small.live}: the bundle cannot be written: No space left on device"
    assert os.listdir(small.live) == []
    small.close()
    with contextlib.closing(Talk(small.home)) as again:
        again.push(to=str(to), via="session")


def test_a_destination_without_inodes_is_refused(small: Talk) -> None:
    for number in range(60):
        small.write(f"f{number}", b"x")
    assert "files and directories are to be made there" in refused(small.push).what


@pytest.mark.parametrize("via", ["push", "session"])
def test_a_disk_that_fills_in_the_middle_changes_nothing_and_leaves_nothing(small: Talk, via: str) -> None:
    small.write_live("a.bin")
    small.write("a.bin", random.Random(10).randbytes(800_000))
    ask = small.session.ask

    def fill_then(op: str, **fields: Any) -> dict[str, Any]:
        answer = ask(op, **fields)
        if op == "place":  # room was there when it was looked for
            (small.live / "ballast").write_bytes(bytes(1_500_000))
        return answer

    small.session.ask = fill_then  # type: ignore[method-assign]
    error = refused(lambda: small.push(via=via))
    assert "No space left" in error.what
    small.close()
    (small.live / "ballast").unlink()
    assert os.listdir(small.live) == ["a.bin"]
    assert small.contents() == {"a.bin": b"old\n"}


# --- owner and mode


def seen(path: Path) -> tuple[int, int, str]:
    found = path.stat()
    return found.st_uid, found.st_gid, oct(stat.S_IMODE(found.st_mode))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o4755])
def test_a_replaced_file_keeps_owner_and_mode(talk: Talk, mode: int) -> None:
    old = talk.write_live("a.py")
    os.chown(old, 1000, 1001)
    old.chmod(mode)
    talk.write("a.py")
    talk.push()
    assert seen(talk.staged("a.py")) == (1000, 1001, oct(mode))


@pytest.mark.parametrize(("here", "there"), [(0o600, 0o644), (0o664, 0o644), (0o700, 0o755), (0o775, 0o755)])
def test_a_new_file_is_0644_or_0755(talk: Talk, here: int, there: int) -> None:
    talk.write("a.sh", mode=here)
    talk.push()
    assert seen(talk.staged("a.sh")) == (os.geteuid(), os.getegid(), oct(there))


def test_staged_files_are_private_until_they_go_live(talk: Talk) -> None:
    talk.write("a.py")
    talk.push()
    assert seen(talk.live / ".deployctl")[2] == oct(0o700)


def test_a_right_to_execute_that_came_later_goes_without_the_bytes(talk: Talk) -> None:
    talk.write("a.sh", mode=0o755)
    old = talk.write_live("a.sh", b"new\n", mode=0o640)
    piece = talk.push()
    [event] = said(talk.events, "staged")
    assert (event["changed"], event["bytes"]) == (["a.sh"], 0)
    talk.golive(piece)
    assert seen(old)[2] == oct(0o750)
    talk.goback(piece)
    assert seen(old)[2] == oct(0o640)


def test_owner_group_and_mode_are_those_that_were_asked_for(talk: Talk) -> None:
    for name in ("a.py", "b.py", "sub/c.py"):
        talk.write(name)
    talk.write_live("a.py")
    talk.write_live("b.py", b"new\n")
    talk.golive(talk.push(owner="daemon", group="12", mode="u=rw,go="))
    daemon = pwd.getpwnam("daemon").pw_uid
    assert {seen(talk.live / name) for name in ("a.py", "b.py", "sub/c.py")} == {(daemon, 12, oct(0o600))}
    assert seen(talk.live / "sub") == (daemon, 12, oct(0o755))
    assert seen(talk.live)[:2] == (os.geteuid(), os.getegid())


def test_what_has_owner_and_mode_already_is_not_sent(talk: Talk) -> None:
    talk.write("a.py")
    os.chown(talk.write_live("a.py", b"new\n", mode=0o600), 1000, 0)
    assert talk.push(owner="1000", mode="0600").files == ()


@pytest.mark.parametrize(("key", "kind"), [("owner", "user"), ("group", "group")])
def test_a_name_that_the_target_does_not_know_is_refused_before_anything_is_sent(talk: Talk, key: str, kind: str) -> None:
    talk.write("a.py")
    error = refused(lambda: talk.push(**{key: "nobody-here"}))
    assert isinstance(error, RefusedError)
    assert error.what == f"the target has no {kind} 'nobody-here'"
    assert os.listdir(talk.live) == []


def test_an_access_list_is_kept_so_that_the_group_gets_no_more_than_it_had(talk: Talk) -> None:
    """user::rw-, user:1000:rw-, group::---, mask::rw-, other::---: by its mode the group could read and write."""
    entries = [(1, 6, -1), (2, 6, 1000), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    old = talk.write_live("a.py")
    try:
        os.setxattr(old, "system.posix_acl_access", acl)
    except OSError:
        pytest.skip("this file system knows no access lists")
    assert seen(old)[2] == oct(0o660)
    talk.write("a.py")
    talk.push()
    assert os.getxattr(talk.staged("a.py"), "system.posix_acl_access") == acl


def test_a_new_file_in_a_directory_of_a_group_is_of_that_group(talk: Talk) -> None:
    os.chown(talk.live, -1, 1234)
    talk.live.chmod(0o2775)
    talk.write("sub/a.py")
    talk.golive(talk.push())
    assert (seen(talk.live / "sub" / "a.py")[1], seen(talk.live / "sub")[1:]) == (1234, (1234, oct(0o2755)))


# --- delete


def test_delete_removes_what_is_gone_from_the_source_and_goback_brings_it_again(talk: Talk) -> None:
    talk.write("a.py")
    for name in ("a.py", "old.py", "pkg/old.py", "notes.txt", "logs/train.log", "venv/pyvenv.cfg", "venv/lib/x.py", ".git/hook.py"):
        talk.write_live(name)
    for name in ("__pycache__/old.cpython-311", "__pycache__/other.cpython-311", "old", "pkg/__pycache__/old.cpython-311.opt-1"):
        talk.write_live(f"{name}.pyc")
    (talk.live / "link.py").symlink_to("a.py")
    before = talk.contents()
    piece = talk.push(include=["*.py"], delete=True)
    assert piece.gone == ("link.py", "old.py", "pkg/old.py")
    assert said(talk.events, "staged")[0]["gone"] == ["link.py", "old.py", "pkg/old.py"]
    talk.golive(piece)
    kept = {"notes.txt", "logs/train.log", "venv/pyvenv.cfg", "venv/lib/x.py", ".git/hook.py", "__pycache__/other.cpython-311.pyc", "a.py"}
    assert set(talk.contents()) == kept
    assert not (talk.live / "pkg").exists()
    talk.goback(piece)
    assert talk.contents() == before
    assert os.readlink(talk.live / "link.py") == "a.py"


def test_delete_alone_is_something_to_do_and_the_preview_shows_it(talk: Talk) -> None:
    talk.write("a.py")
    talk.write_live("a.py", b"new\n")
    talk.write_live("old.py")
    step, plan = push(talk.train, to=str(talk.live), include=["*.py"], delete=True), setting(talk.home)
    shown = step.preview(step.gather(plan), talk.session, plan, opened())
    assert shown == {"files": 1, "changed": [], "gone": ["old.py"], "bytes": 0}
    talk.session.close()
    talk = Talk(talk.home)
    talk.golive(talk.push(include=["*.py"], delete=True))
    assert talk.contents() == {"a.py": b"new\n"}
    talk.close()


def test_delete_never_takes_the_log_of_the_workload(tmp_path: Path) -> None:
    talk = Talk(tmp_path, directory=str(tmp_path / "live"), log="logs/train.log")
    talk.write("a.py")
    talk.write_live("logs/train.log")
    talk.write_live("logs/other.log")
    assert talk.push(include=["*"], delete=True).gone == ("logs/other.log",)
    talk.close()


@pytest.mark.parametrize("first", ["bring", "delete"])
def test_one_push_that_removes_what_another_one_brings_is_refused(talk: Talk, first: str) -> None:
    (talk.home / "lib").mkdir()
    (talk.home / "lib" / "b.py").write_text("b")
    talk.write("a.py")
    talk.write_live("b.py")
    acts = [lambda: talk.push(**{"from": str(talk.home / "lib")}), lambda: talk.push(include=["*.py"], delete=True)]
    acts = acts if first == "bring" else acts[::-1]
    acts[0]()
    assert refused(acts[1]).what == "one push of this run brings it, another one removes it"


# --- what stands in the way


def test_an_immutable_file_is_refused_before_anything_is_stopped(talk: Talk) -> None:
    old = talk.write_live("a.py")
    talk.write("a.py")
    if subprocess.run(["chattr", "+i", str(old)], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no such flag")
    try:
        error = refused(talk.push)
    finally:
        subprocess.run(["chattr", "-i", str(old)], check=True)
    assert isinstance(error, RefusedError)
    assert str(error) == f"here: {old}: it is immutable (chattr +i)"


def test_a_hard_linked_file_is_replaced_and_its_other_name_keeps_the_old_one(talk: Talk) -> None:
    os.link(talk.write_live("a.py"), talk.home / "other")
    talk.write("a.py")
    talk.golive(talk.push())
    assert (talk.contents(), (talk.home / "other").read_bytes()) == ({"a.py": b"new\n"}, b"old\n")


def test_a_destination_that_is_a_link_to_a_directory_works(talk: Talk) -> None:
    (talk.home / "link").symlink_to(talk.live)
    talk.write("sub/a.py")
    talk.golive(talk.push(to=str(talk.home / "link")))
    assert talk.contents() == {"sub/a.py": b"new\n"}


def test_a_program_that_runs_is_replaced_and_runs_on(talk: Talk) -> None:
    old = talk.live / "sleeper"
    shutil.copy("/bin/sleep", old)
    with subprocess.Popen([str(old), "600"]) as program:
        talk.write("sleeper", mode=0o755)
        talk.golive(talk.push())
        assert (old.read_bytes(), program.poll()) == (b"new\n", None)
        program.kill()


def test_a_symbolic_link_is_not_replaced(talk: Talk) -> None:
    elsewhere = talk.home / "elsewhere.py"
    elsewhere.write_text("mine")
    (talk.live / "a.py").symlink_to(elsewhere)
    talk.write("a.py")
    error = refused(talk.push)
    assert isinstance(error, RefusedError)
    assert str(error) == f"here: {talk.live}/a.py: it is a symbolic link"
    talk.close()
    assert (os.listdir(talk.live), elsewhere.read_text()) == (["a.py"], "mine")


def test_a_directory_is_not_replaced_by_a_file(talk: Talk) -> None:
    (talk.live / "a.py").mkdir()
    talk.write("a.py")
    with pytest.raises(RefusedError, match="it is a directory"):
        talk.push()


def test_a_pipe_is_not_read(talk: Talk) -> None:
    os.mkfifo(talk.live / "a.py")
    talk.write("a.py")
    with pytest.raises(RefusedError, match="it is no regular file"):
        talk.push()


def test_a_file_where_a_directory_should_go_is_refused_before_anything_is_stopped(talk: Talk) -> None:
    talk.write_live("sub")
    talk.write("sub/a.py")
    with pytest.raises(RefusedError):
        talk.push()


@pytest.mark.parametrize("kind", ["file", "dangling"])
def test_a_destination_that_is_no_directory_is_refused(talk: Talk, kind: str) -> None:
    to = talk.home / "to"
    if kind == "file":
        to.write_text("x")
    else:
        to.symlink_to(talk.home / "nowhere")
    talk.write("a.py")
    error = refused(lambda: talk.push(to=str(to)))
    assert isinstance(error, RefusedError)
    assert str(to) in error.where
    assert not (talk.home / "nowhere").exists()


@pytest.mark.parametrize("to", ["to", "to/two/three", "to/two/", "to/two//three", "to/./two"])
def test_a_missing_destination_is_made_and_removed_again(talk: Talk, to: str) -> None:
    talk.write("a.py")
    talk.push(to=f"{talk.home}/{to}")
    assert (talk.home / to / ".deployctl" / RUN / "new" / "a.py").exists()
    talk.close()
    assert not (talk.home / "to").exists()


@pytest.mark.parametrize("second", ["to", "to/", "to/deeper", "to/../to"])
def test_two_pushes_to_one_missing_destination_are_removed_again(talk: Talk, second: str) -> None:
    talk.write("a.py")
    talk.write("b.txt")
    talk.push(to=f"{talk.home}/to", include=["*.py"])
    talk.push(to=f"{talk.home}/{second}", include=["*.txt"])
    talk.close()
    assert not (talk.home / "to").exists()


def test_two_pushes_to_one_destination_both_go_live(talk: Talk) -> None:
    for name in ("a.py", "b.txt"):
        talk.write(name)
        talk.write_live(name)
    pieces = [talk.push(include=["*.py"]), talk.push(include=["*.txt"])]
    operations = [push(talk.train).compile(setting(), piece).do[0] for piece in pieces]
    assert talk.job(*operations)[-1]["status"] == 0
    assert talk.contents() == {"a.py": b"new\n", "b.txt": b"new\n"}


def test_one_file_brought_by_two_pushes_is_refused_as_that(talk: Talk) -> None:
    talk.write("a.py")
    talk.push()
    error = refused(talk.push)
    assert isinstance(error, RefusedError)
    assert "did not arrive" not in error.what


# --- what changes meanwhile


def test_a_file_that_vanishes_is_refused(talk: Talk) -> None:
    file, step, plan = talk.write("a.py"), push(talk.train, to=str(talk.live)), setting(talk.home)
    gathered = step.gather(plan)
    file.unlink()
    with pytest.raises(DeployError):
        step.prepare(gathered, talk.session, plan, opened(), talk.record)
    talk.close()
    assert os.listdir(talk.live) == []


@pytest.mark.parametrize("content", [b"longer than it was\n", b"x", b"nEw\n"])
def test_a_file_that_changes_is_refused(talk: Talk, content: bytes) -> None:
    file, step, plan = talk.write("a.py"), push(talk.train, to=str(talk.live)), setting(talk.home)
    talk.write_live("a.py")
    gathered = step.gather(plan)
    file.write_bytes(content)
    with pytest.raises(DeployError):
        step.prepare(gathered, talk.session, plan, opened(), talk.record)
    assert talk.contents() == {"a.py": b"old\n"}


# --- the end of the session


def test_the_end_of_a_session_takes_back_what_it_staged(talk: Talk) -> None:
    talk.write("a.py")
    talk.push()
    talk.close()
    assert os.listdir(talk.live) == []


CONTROLLER = """
import sys, time
from pathlib import Path
from tests.steps import Talk
talk = Talk(Path(sys.argv[1]))
talk.write("a.py")
talk.push()
print("staged", flush=True)
time.sleep(600)
"""


def free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_controller_that_dies_leaves_nothing_staged_and_no_lock(tmp_path: Path, number: int) -> None:
    lock = tmp_path / "state" / "workloads" / "train" / "lock"
    with subprocess.Popen([sys.executable, "-c", CONTROLLER, str(tmp_path)], stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"staged\n"
        assert not free(lock)
        controller.send_signal(number)
    until("the lock is free", lambda: free(lock))
    assert os.listdir(tmp_path / "live") == []


def test_a_job_keeps_what_was_staged(talk: Talk) -> None:
    talk.write("a.py")
    piece = talk.push()
    events = talk.job({"op": "golive", "sets": [{"root": piece.root, "paths": list(piece.files)}]})
    assert (events[-1]["outcome"], events[-1]["status"]) == ("done", 0)
    talk.close()
    assert talk.contents() == {"a.py": b"new\n"}


def test_the_last_three_releases_are_kept(tmp_path: Path) -> None:
    runs = [f"2026010{day}-000000-aaaa" for day in range(1, 6)]
    for run in runs:
        talk = Talk(tmp_path, run)
        talk.write("a.py", run.encode())
        piece = talk.push()
        talk.job({"op": "golive", "sets": [{"root": piece.root, "paths": list(piece.files)}]})
        talk.close()
    assert sorted(os.listdir(tmp_path / "live" / ".deployctl")) == runs[2:]
    assert (tmp_path / "live" / ".deployctl" / runs[4] / "old" / "a.py").read_bytes() == runs[3].encode()


def test_a_directory_that_leads_out_of_the_destination_is_refused(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (talk.live / "sub").symlink_to(tmp_path / "elsewhere")
    talk.write("sub/a.py")
    assert "leads out of the destination" in refused(talk.push).what
    assert os.listdir(tmp_path / "elsewhere") == []
