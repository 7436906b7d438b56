"""What every transport promises: a class of tests for each test module to inherit, with its own `transport` fixture."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployctl.errors import TransportError
from deployctl.transports.base import TAIL, Transport, exec

MEGABYTE = 1024 * 1024
EVERY_BYTE = bytes(range(256))
WORDS = ["a b", "'", '"', "it's \"so\"", "$HOME", "`id`", "$(id)", "a;b", "a&b|c>d", "*", "?[a-z]", "~", "", "-n", "--", "\\", "two\nlines",
    "tab\there", "!x", "{a,b}", "#", "é ü 漢 🚀"]  # fmt: skip


def sh(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


@pytest.fixture
def directory(transport: Transport) -> Iterator[str]:
    """An empty directory at the far side."""
    path = exec(transport, ["mktemp", "-d"]).stdout.decode().strip()
    yield path
    exec(transport, ["rm", "-rf", path])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of ours, with every byte value and a mode that must not travel."""
    path = tmp_path / "source"
    path.write_bytes(EVERY_BYTE * 5000 + b"end")
    path.chmod(0o755)
    return path


class Contract:
    """Each test is a promise of Transport or of Channel."""

    def test_every_byte_value_arrives_in_both_directions(self, transport: Transport) -> None:
        assert exec(transport, ["cat"], stdin=EVERY_BYTE).stdout == EVERY_BYTE

    def test_20_mib_go_there_and_come_back(self, transport: Transport) -> None:
        data = EVERY_BYTE * (20 * MEGABYTE // 256)
        assert exec(transport, ["cat"], stdin=data).stdout == data

    def test_an_argv_arrives_as_it_is(self, transport: Transport) -> None:
        program = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
        done = exec(transport, ["python3", "-I", "-c", program, *WORDS])
        assert done.stdout.decode("utf-8", "replace").split("\0") == WORDS

    def test_the_status_is_the_programs(self, transport: Transport) -> None:
        assert exec(transport, sh("exit 7")).status == 7

    @pytest.mark.parametrize("name, number", [("KILL", 9), ("TERM", 15)])
    def test_a_killed_program_has_128_and_its_signal(self, transport: Transport, name: str, number: int) -> None:
        assert exec(transport, sh(f"kill -{name} $$")).status == 128 + number

    def test_the_two_streams_stay_apart(self, transport: Transport) -> None:
        done = exec(transport, sh("echo out; echo err >&2"))
        assert (done.stdout, done.stderr) == (b"out\n", "err\n")

    def test_a_refusal_wins_over_the_broken_pipe(self, transport: Transport) -> None:
        done = exec(transport, sh("echo 'no room' >&2; exit 3"), stdin=b"x" * (20 * MEGABYTE))
        assert (done.status, done.stderr) == (3, "no room\n")

    def test_a_timeout_is_an_error_and_prompt(self, transport: Transport) -> None:
        begun = time.monotonic()
        with pytest.raises(TransportError, match=r"no end within 1 s.*going to sleep") as caught:
            exec(transport, sh("echo going to sleep >&2; exec sleep 60"), timeout=1)
        assert (caught.value.exit_status, time.monotonic() - begun < 8) == (3, True)

    def test_5_mb_on_both_streams_do_not_block(self, transport: Transport) -> None:
        done = exec(transport, sh("head -c 5000000 /dev/zero >&2; head -c 5000000 /dev/zero; printf last >&2"))
        assert (len(done.stdout), len(done.stderr), done.stderr[-5:]) == (5_000_000, TAIL, "\0last")

    def test_stdin_ends_when_there_are_no_bytes(self, transport: Transport) -> None:
        assert exec(transport, sh("cat; echo end"), timeout=10).stdout == b"end\n"

    def test_a_talk_goes_back_and_forth(self, transport: Transport) -> None:
        channel = transport.open(["cat"])
        for word in (b"one", b"two"):
            channel.send(word)
            assert channel.receive(10) == word
        with pytest.raises(TimeoutError):
            channel.receive(0.05)
        channel.send_eof()
        assert (channel.receive(10), channel.status(10)) == (b"", 0)
        channel.close()
        channel.close()

    def test_several_programs_run_at_once(self, transport: Transport) -> None:
        channels = [transport.open(["cat"]) for _ in range(5)]
        for number, channel in enumerate(channels):
            channel.send(b"%d" % number)
        assert [channel.receive(10) for channel in channels] == [b"0", b"1", b"2", b"3", b"4"]
        for channel in channels:
            channel.close()

    def test_a_closed_channel_ends_what_reads_its_stdin(self, transport: Transport, directory: str) -> None:
        channel = transport.open(sh(f"cat; touch {directory}/ended"))
        channel.close()
        assert exec(transport, sh(f"for i in $(seq 100); do test -e {directory}/ended && exit 0; sleep 0.1; done; exit 1")).status == 0

    def test_a_file_arrives_whole_and_private(self, transport: Transport, directory: str, source: Path) -> None:
        heard: list[int] = []
        transport.put(source, f"{directory}/new", heard.append)
        assert exec(transport, ["cat", f"{directory}/new"]).stdout == source.read_bytes()
        assert exec(transport, ["stat", "-c", "%a", f"{directory}/new"]).stdout == b"600\n"
        assert (heard == sorted(heard), heard[-1]) == (True, source.stat().st_size)

    def test_an_empty_file_and_a_strange_name_arrive(self, transport: Transport, directory: str, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        strange = f"{directory}/it's é; $(x) *"
        transport.put(tmp_path / "empty", strange)
        assert exec(transport, ["stat", "-c", "%s", strange]).stdout == b"0\n"

    def test_a_put_into_a_missing_directory_is_an_error(self, transport: Transport, directory: str, source: Path) -> None:
        with pytest.raises(TransportError, match="No such file"):
            transport.put(source, f"{directory}/missing/new")

    def test_a_source_that_is_missing_leaves_nothing(self, transport: Transport, directory: str, tmp_path: Path) -> None:
        with pytest.raises(TransportError, match="No such file"):
            transport.put(tmp_path / "missing", f"{directory}/new")
        assert exec(transport, ["ls", directory]).stdout == b""


class NewFilesOnly:
    """For the transports whose carrier can tell that a file is there."""

    def test_an_existing_file_is_refused_and_stays(self, transport: Transport, directory: str, source: Path) -> None:
        exec(transport, sh(f"echo old > {shlex.quote(directory)}/f"))
        with pytest.raises(TransportError, match=f"{directory}/f.*(there already|File exists)"):
            transport.put(source, f"{directory}/f")
        assert exec(transport, ["cat", f"{directory}/f"]).stdout == b"old\n"

    def test_a_link_that_leads_nowhere_is_refused(self, transport: Transport, directory: str, source: Path) -> None:
        exec(transport, ["ln", "-s", f"{directory}/elsewhere", f"{directory}/f"])
        with pytest.raises(TransportError):
            transport.put(source, f"{directory}/f")
        assert exec(transport, ["ls", directory]).stdout == b"f\n"


def threads() -> set[str]:
    """The names of our threads that live."""
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(("deployctl", "Thread-"))}


def imported(modules: str, code: str) -> bool:
    """Does this code import one of these modules, in an interpreter of its own?"""
    check = f"import sys; {code}; print(any(name in sys.modules for name in {modules.split()!r}))"
    return subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True).stdout == "True\n"
