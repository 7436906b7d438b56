"""The transport over SSH, against an OpenSSH server on loopback."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from deployctl.errors import TransportError
from deployctl.transports.base import exec
from deployctl.transports.connect import Connections
from deployctl.transports.local import Local
from deployctl.transports.pct import Pct
from deployctl.transports.ssh import Ssh
from deployctl.transports.ssh_config import resolve
from tests.transports.contract import Contract, NewFilesOnly, imported, sh, threads
from tests.transports.sshd import Host, Server, free_port

Serve = Callable[..., Server]


@pytest.fixture
def transport(server: Server) -> Iterator[Ssh]:
    ssh = Ssh(server.host)
    yield ssh
    ssh.close()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An ssh-agent without keys."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    while not path.exists():
        time.sleep(0.01)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    yield
    process.terminate()
    process.wait()


@dataclass(frozen=True)
class Target:
    """What the hosts file says of a target."""

    name: str
    kind: Literal["ct", "host", "local"]
    host: Host | None
    ct: int | None
    start: bool = False
    nodes: tuple[Host, ...] = ()


def refusal(server: Server) -> TransportError:
    """The error of a connection that must not come about."""
    ssh = Ssh(server.host)
    with pytest.raises(TransportError) as caught:
        ssh.open(["true"])
    ssh.close()
    assert server.connections() == 0
    return caught.value


def connects(server: Server) -> bool:
    ssh = Ssh(server.host)
    try:
        return exec(ssh, ["true"]).status == 0
    finally:
        ssh.close()


class TestContract(Contract, NewFilesOnly):
    pass


class TestHostKey:
    def test_an_unknown_key_is_refused_and_shown(self, server: Server) -> None:
        server.known_hosts.write_text("")
        ask = ["ssh-keygen", "-lf", f"{server.directory}/host_ed25519.pub"]
        shown = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        error = refusal(server)
        assert error.what == f"the host key of 127.0.0.1:{server.port} is unknown: ssh-ed25519 {shown.split()[1]}"
        assert error.todo.endswith(f"then connect once with `ssh -F {server.ssh_config} box`")
        assert server.known_hosts.read_text() == ""

    @pytest.mark.parametrize("line", ["", "HostKeyAlias rack-one"])
    def test_who_follows_the_advice_makes_the_host_known(self, server: Server, line: str) -> None:
        server.write_config(*filter(None, [line]))
        server.known_hosts.write_text("")
        ssh, *words = shlex.split(refusal(server).todo.split("`")[-2])
        instead_of_yes = ["-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes"]
        subprocess.run([ssh, *instead_of_yes, *words, "true"], check=True, capture_output=True, timeout=30)
        assert connects(server)

    @pytest.mark.parametrize(
        ("ssh", "said"),
        [("box", "box"), ("bob@box", "bob@box"), ("bob@box:2222", "-p 2222 bob@box"), ("[::1]:2222", "-p 2222 ::1")],
    )
    def test_the_advice_goes_by_the_name_as_it_was_written(self, server: Server, ssh: str, said: str) -> None:
        odd = server.ssh_config.rename(server.directory / "an ssh config")
        assert resolve(Host("pve1", ssh, odd)).command == f"ssh -F '{odd}' {said}"
        assert resolve(Host("pve1", ssh, None)).command == f"ssh {said}"

    def test_a_changed_key_is_refused_and_names_the_line(self, server: Server) -> None:
        server.key("other", "ed25519")
        server.known_hosts.write_text("# a comment\n" + server.known_line("other"))
        error = refusal(server)
        assert "has changed: it shows ssh-ed25519 SHA256:" in error.what
        assert f"{server.known_hosts}:2 has SHA256:" in error.what

    def test_no_known_hosts_file_at_all_is_a_refusal(self, server: Server) -> None:
        server.known_hosts.unlink()
        assert "is unknown" in refusal(server).what

    def test_a_known_key_of_a_type_that_is_not_served_is_passed_over(self, serve: Serve) -> None:
        server = serve(keys=("ed25519", "rsa"))
        server.key("gone", "ecdsa")
        server.known_hosts.write_text(server.known_line("gone") + server.known_line("host_rsa"))
        assert connects(server)

    def test_another_type_than_the_known_one_is_refused(self, server: Server) -> None:
        server.key("gone", "ecdsa")
        server.known_hosts.write_text(server.known_line("gone"))
        assert "(known are other types of it: ecdsa-sha2-nistp256)" in refusal(server).what

    def test_either_of_two_keys_of_a_type_will_do(self, server: Server) -> None:
        server.key("old", "ed25519")
        server.known_hosts.write_text(server.known_line("old") + server.known_line("host_ed25519"))
        assert connects(server)

    def test_a_revoked_key_is_refused(self, server: Server) -> None:
        line = server.known_line("host_ed25519")
        server.known_hosts.write_text(line + f"@revoked {line}")
        assert "is revoked in" in refusal(server).what

    def test_a_certificate_authority_is_no_host_key(self, server: Server) -> None:
        server.known_hosts.write_text("@cert-authority " + server.known_line("host_ed25519"))
        assert "is unknown" in refusal(server).what

    def test_hashed_lines_are_read(self, server: Server) -> None:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", server.known_hosts], check=True, capture_output=True)
        assert server.known_hosts.read_text().startswith("|1|")
        assert connects(server)

    @pytest.mark.parametrize("name, known", [("127.0.*", True), ("127.0.0.1", True), ("127.0.*,!127.0.0.1", False), ("127.0.0", False)])
    def test_patterns_and_bare_names_mean_what_they_mean_to_ssh(self, server: Server, name: str, known: bool) -> None:
        server.known_hosts.write_text(server.known_line("host_ed25519", name))
        assert connects(server) if known else "is unknown" in refusal(server).what

    def test_a_host_key_alias_is_looked_up_instead_of_the_address(self, server: Server) -> None:
        server.write_config("HostKeyAlias rack-%n")
        server.known_hosts.write_text(server.known_line("host_ed25519", "rack-box"))
        assert connects(server)

    def test_an_alias_is_not_known_by_the_address(self, server: Server) -> None:
        server.write_config("HostKeyAlias other")
        assert "is unknown" in refusal(server).what

    def test_lines_that_mean_nothing_are_passed_over(self, server: Server) -> None:
        rubbish = f"\n[127.0.0.1]:{server.port} ssh-ed25519 %%%\n[127.0.0.1]:{server.port}\n|1|x ssh-rsa AAAA\n\xff\n"
        server.known_hosts.write_bytes(rubbish.encode("latin-1") + server.known_hosts.read_bytes())
        assert connects(server)

    def test_the_global_file_is_read(self, server: Server) -> None:
        server.write_config(f"UserKnownHostsFile {server.directory}/none", f"GlobalKnownHostsFile {server.known_hosts}")
        assert connects(server)


class TestRoute:
    def test_an_included_file_is_followed(self, server: Server) -> None:
        inner = server.directory / "inner"
        server.ssh_config.rename(inner)
        server.ssh_config.write_text(f"Include {inner}\n")
        assert connects(server)

    def test_user_and_port_of_the_hosts_file_win(self, server: Server) -> None:
        server.write_config("Port 1", "User nobody-at-all")
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        ssh = Ssh(Host("pve1", f"{user}@box:{server.port}", server.ssh_config))
        assert exec(ssh, ["true"]).status == 0
        ssh.close()

    @pytest.mark.parametrize("identity", ["${HERE}/user", "%d/user"])
    def test_tokens_that_ssh_leaves_are_filled_in(self, server: Server, monkeypatch: pytest.MonkeyPatch, identity: str) -> None:
        monkeypatch.setenv("HERE", str(server.directory))
        monkeypatch.setenv("HOME", str(server.directory))
        server.write_config(f"IdentityFile {identity}")
        server.ssh_config.write_text(server.ssh_config.read_text().replace(f"IdentityFile {server.directory}/user\n", ""))
        assert connects(server)

    @pytest.mark.parametrize("line", ["ProxyJump bastion", "ProxyCommand nc %h %p"])
    def test_a_jump_is_refused_for_now(self, server: Server, line: str) -> None:
        server.write_config(line)
        assert "not supported yet" in refusal(server).what

    def test_no_proxy_is_no_jump(self, server: Server) -> None:
        server.write_config("ProxyCommand none", "ProxyJump none")
        assert connects(server)

    def test_a_broken_ssh_config_is_told_in_sshs_words(self, server: Server) -> None:
        server.ssh_config.write_text("Hsot box\n")
        assert "Bad configuration option" in refusal(server).what or "terminating" in refusal(server).what

    def test_an_address_that_looks_like_an_option_is_refused(self) -> None:
        with pytest.raises(TransportError, match="is no ssh address"):
            Ssh(Host("pve1", "-oProxyCommand=touch /tmp/x", None)).open(["true"])

    def test_without_an_ssh_the_words_are_taken_as_they_are(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        home = server.directory / "home"
        (home / ".ssh").mkdir(parents=True)
        (server.directory / "user").rename(home / ".ssh/id_ed25519")
        server.known_hosts.rename(home / ".ssh/known_hosts")
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("PATH", "/nowhere")
        ssh = Ssh(Host("pve1", f"127.0.0.1:{server.port}", None))
        assert exec(ssh, ["true"]).status == 0
        ssh.close()

    def test_an_ssh_config_without_an_ssh_is_an_error(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nowhere")
        assert "there is no ssh here" in refusal(server).what


class TestUnreachable:
    def open(self, address: str) -> TransportError:
        ssh = Ssh(Host("pve1", address, Path("/dev/null")))
        with pytest.raises(TransportError) as caught:
            ssh.open(["true"])
        assert (caught.value.where, caught.value.exit_status) == ("pve1", 3)
        return caught.value

    def test_a_closed_port_is_told(self) -> None:
        assert "cannot be reached: Connection refused" in self.open(f"127.0.0.1:{free_port()}").what

    def test_a_name_without_an_address_is_told(self) -> None:
        assert "no address for 'no.such.invalid'" in self.open("no.such.invalid").what

    def test_silence_ends_at_the_connect_timeout(self, tmp_path: Path) -> None:
        config = tmp_path / "config"
        with socket.socket() as deaf, socket.socket() as fill:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            fill.connect(deaf.getsockname())
            config.write_text(f"Host box\n HostName 127.0.0.1\n Port {deaf.getsockname()[1]}\n ConnectTimeout 1\n")
            with pytest.raises(TransportError, match="did not answer within 1 s"):
                Ssh(Host("pve1", "box", config)).open(["true"])

    def test_a_server_that_is_no_ssh_is_told(self) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(8)
            answering = threading.Thread(target=answer, args=(other, b"HTTP/1.0 400 no\r\n\r\n", 3), daemon=True)
            answering.start()
            assert "ssh to 127.0.0.1" in self.open(f"127.0.0.1:{other.getsockname()[1]}").what
            answering.join(5)

    def test_a_server_that_hangs_up_at_first_is_asked_again(self, server: Server) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen(8)
            port = other.getsockname()[1]
            answering = threading.Thread(target=answer, args=(other, b"", 1), kwargs={"then": server.port}, daemon=True)
            answering.start()
            server.known_hosts.write_text(server.known_line("host_ed25519", f"[127.0.0.1]:{port}"))
            ssh = Ssh(Host("pve1", f"box:{port}", server.ssh_config))
            assert exec(ssh, ["true"]).status == 0
            ssh.close()
            answering.join(5)


def answer(listener: socket.socket, words: bytes, times: int, then: int = 0) -> None:
    """Hears so many callers, says these words and hangs up; then carries one caller to another port."""
    for _ in range(times):
        caller, _ = listener.accept()
        with caller:
            if words:
                caller.recv(1024)
            caller.sendall(words)
    if then:
        caller, _ = listener.accept()
        with caller, socket.create_connection(("127.0.0.1", then)) as server:
            back = threading.Thread(target=carry, args=(server, caller), daemon=True)
            back.start()
            carry(caller, server)
            back.join(5)


def carry(source: socket.socket, destination: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            destination.sendall(data)
        destination.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class TestLogin:
    def test_what_was_tried_is_named(self, server: Server) -> None:
        stranger = server.key("stranger", "ecdsa")
        (server.directory / "authorized_keys").write_text((server.directory / "stranger.pub").read_text())
        server.write_config(f"IdentityFile {server.key('locked', 'ed25519', 'secret')}")
        error = refusal(server)
        assert f"{server.directory}/user: refused" in error.what
        assert f"{server.directory}/locked: has a passphrase, and the agent does not hold it" in error.what
        assert (str(stranger) in error.what, "secret" in str(error)) == (False, False)

    def test_no_key_at_all_is_told(self, server: Server) -> None:
        (server.directory / "user").unlink()
        (server.directory / "user.pub").unlink()
        assert "there is no key" in refusal(server).what

    def test_a_file_that_is_no_key_is_told(self, server: Server) -> None:
        (server.directory / "user").write_text("rubbish\n")
        assert "cannot be read as a private key" in refusal(server).what

    def test_a_server_that_takes_no_keys_is_told(self, serve: Serve) -> None:
        error = refusal(serve("PubkeyAuthentication no", "KbdInteractiveAuthentication yes"))
        assert "takes no keys, only keyboard-interactive" in error.what

    def test_a_server_that_wants_more_is_told(self, serve: Serve) -> None:
        ssh = Ssh(serve("AuthenticationMethods publickey,keyboard-interactive", "KbdInteractiveAuthentication yes").host)
        with pytest.raises(TransportError, match="the host wants keyboard-interactive as well"):
            ssh.open(["true"])

    @pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
    def test_each_type_of_key_logs_in(self, server: Server, kind: str) -> None:
        server.key("mine", kind)
        (server.directory / "authorized_keys").write_text((server.directory / "mine.pub").read_text())
        server.write_config(f"IdentityFile {server.directory}/mine")
        assert connects(server)

    def test_a_certificate_beside_the_key_logs_in(self, serve: Serve, tmp_path: Path) -> None:
        server = serve(f"TrustedUserCAKeys {tmp_path}/authority.pub")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "authority"], check=True)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        sign = ["ssh-keygen", "-q", "-s", f"{tmp_path}/authority", "-I", "me", "-n", user, f"{server.directory}/user.pub"]
        subprocess.run(sign, check=True, capture_output=True)
        (server.directory / "authorized_keys").write_text("")
        assert connects(server)

    def test_the_agent_holds_what_the_file_locks(self, server: Server, agent: None) -> None:
        locked = server.directory / "user"
        subprocess.run(["ssh-add", "-q", locked], check=True, capture_output=True)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", locked], check=True, capture_output=True)
        assert connects(server)

    def test_other_agent_keys_are_left_out_where_identities_only_says_so(self, server: Server, agent: None) -> None:
        subprocess.run(["ssh-add", "-q", server.directory / "user"], check=True, capture_output=True)
        (server.directory / "user").unlink()
        (server.directory / "user.pub").unlink()
        assert "there is no key" in refusal(server).what

    def test_an_agent_key_of_an_unknown_type_does_not_stop_the_others(
        self, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "strange"))
        with socket.socket(socket.AF_UNIX) as strange:
            strange.bind(str(tmp_path / "strange"))
            strange.listen(1)
            blob = text(b"sk-ssh-ed25519@openssh.com") + text(b"k" * 32) + text(b"ssh:")
            keys = b"\x0c" + (1).to_bytes(4, "big") + text(blob) + text(b"token")
            answering = threading.Thread(target=answer, args=(strange, text(keys), 1), daemon=True)
            answering.start()
            server.write_config("IdentitiesOnly no")
            assert connects(server)
            answering.join(5)

    def test_an_agent_that_is_gone_is_no_error(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere/agent")
        assert connects(server)


def text(data: bytes) -> bytes:
    """A string of the SSH protocol."""
    return len(data).to_bytes(4, "big") + data


class TestConnection:
    def test_there_is_one_for_all(self, server: Server, tmp_path: Path) -> None:
        ssh = Ssh(server.host)
        (tmp_path / "file").write_text("x")
        for number in range(3):
            exec(ssh, ["true"])
            ssh.put(tmp_path / "file", f"{ssh.private_directory()}/{number}")
        ssh.close()
        assert server.connections() == 1

    def test_nothing_is_contacted_before_the_first_use(self, server: Server) -> None:
        Ssh(server.host).close()
        assert "Connection from" not in (server.directory / "log").read_text() and server.connections() == 0

    @pytest.mark.serial
    def test_small_pieces_are_not_held_back_by_nagles_algorithm(self, transport: Ssh) -> None:
        channel = transport.open(["cat"])

        def exchange() -> float:
            begun = time.monotonic()
            for _ in range(10):
                channel.send(b"one")
                channel.send(b"two")
                arrived = channel.receive(5)
                while len(arrived) < 6:
                    arrived += channel.receive(5)
            return time.monotonic() - begun

        assert any(exchange() < 0.2 for _ in range(20))  # held back, each would take 0.4 s; a busy machine spoils some
        channel.close()

    def test_more_programs_than_sessions_get_another_connection(self, serve: Serve) -> None:
        server = serve("MaxSessions 2")
        ssh = Ssh(server.host)
        channels = [ssh.open(["cat"]) for _ in range(5)]
        for channel in channels:
            channel.send_eof()
            assert channel.status(10) == 0
            channel.close()
        ssh.close()
        assert server.connections() == 3

    def test_no_terminal_is_made(self, transport: Ssh) -> None:
        assert exec(transport, sh("tty; test -t 1 || test -t 2 || echo none")).stdout == b"not a tty\nnone\n"

    def test_a_server_that_stops_answering_is_given_up(self, server: Server) -> None:
        ssh = Ssh(server.host, quiet=1.5)
        channel = ssh.open(sh("echo; exec sleep 60"))
        assert channel.receive(5) == b"\n"
        for pid in server.children():
            os.kill(pid, signal.SIGSTOP)
        with pytest.raises(TransportError, match="the ssh connection broke: nothing heard for 2 s"):
            channel.receive(10)
        channel.close()
        ssh.close()

    def test_a_quiet_program_is_not_given_up(self, server: Server) -> None:
        ssh = Ssh(server.host, quiet=0.6)
        assert exec(ssh, sh("sleep 2.5; echo awake")).stdout == b"awake\n"
        ssh.close()

    def test_a_connection_that_breaks_is_an_error(self, server: Server) -> None:
        ssh = Ssh(server.host)
        channel = ssh.open(sh("echo; exec sleep 60"))
        channel.receive(5)
        server.kill_sessions()
        with pytest.raises(TransportError, match="the ssh connection broke"):
            channel.receive(10)
        with pytest.raises(TransportError, match="the ssh connection broke"):
            channel.status(10)
        with pytest.raises(TransportError, match="the ssh connection broke"):
            ssh.open(["true"])
        ssh.close()

    def test_close_leaves_no_thread(self, server: Server) -> None:
        before = threads()
        ssh = Ssh(server.host)
        exec(ssh, ["true"])
        ssh.close()
        ssh.close()
        deadline = time.monotonic() + 5
        while threads() - before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threads() - before == set()


class TestFiles:
    def test_a_file_is_private_from_its_first_moment(self, transport: Ssh, far: Path) -> None:
        (far / "big").write_bytes(b"x" * 3_000_000)
        modes: set[int] = set()
        transport.put(far / "big", f"{far}/new", lambda _: modes.add((far / "new").stat().st_mode & 0o777))
        assert modes == {0o600}

    def test_a_connection_that_breaks_in_the_middle_is_an_error(self, server: Server, tmp_path: Path) -> None:
        ssh = Ssh(server.host)
        (tmp_path / "big").write_bytes(b"x" * 30_000_000)

        def cut(sent: int) -> None:
            if sent > 1_000_000:
                server.kill_sessions()

        with pytest.raises(TransportError, match="cannot be put to"):
            ssh.put(tmp_path / "big", f"{tmp_path}/new", cut)
        ssh.close()

    def test_a_directory_without_room_is_refused_before_anything_is_written(self, transport: Ssh, tmp_path: Path) -> None:
        (small := tmp_path / "small").mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], check=False, capture_output=True).returncode:
            pytest.skip("nothing may be mounted here")
        try:
            (source := tmp_path / "large").write_bytes(bytes(2_000_000))
            with pytest.raises(TransportError, match=r"'.*/small' has no room: 2\.0 MB are needed, 1\.0 MB and \d+ inodes are free"):
                transport.put(source, f"{small}/bundle")
            assert list(small.iterdir()) == []
        finally:
            subprocess.run(["umount", "-l", small], check=True)

    def test_two_threads_put_at_once(self, transport: Ssh, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x" * 1_000_000)
        putting = [threading.Thread(target=transport.put, args=(tmp_path / "file", f"{tmp_path}/{number}")) for number in range(4)]
        for thread in putting:
            thread.start()
        for thread in putting:
            thread.join(20)
        assert [(tmp_path / str(number)).stat().st_size for number in range(4)] == [1_000_000] * 4

    def test_a_missing_sftp_is_named(self, serve: Serve, tmp_path: Path) -> None:
        ssh = Ssh(serve("Subsystem other /bin/false").host)
        (tmp_path / "file").write_text("x")
        with pytest.raises(TransportError, match="the host offers no SFTP"):
            ssh.put(tmp_path / "file", f"{tmp_path}/new")
        ssh.close()

    def test_a_full_disk_leaves_no_part(self, serve: Serve, tmp_path: Path) -> None:
        small = tmp_path / "small"
        small.write_text(f"#!/bin/bash\nulimit -f 100\ntrap '' XFSZ\nexec {sftp_server()}\n")
        small.chmod(0o755)
        ssh = Ssh(serve(f"Subsystem sftp {small}").host)
        (tmp_path / "file").write_bytes(b"x" * 1_000_000)
        with pytest.raises(TransportError, match="cannot be put to"):
            ssh.put(tmp_path / "file", f"{tmp_path}/new")
        ssh.close()
        assert not (tmp_path / "new").exists()

    def test_the_private_directory_is_private_and_goes_with_its_files(self, server: Server, tmp_path: Path) -> None:
        ssh = Ssh(server.host)
        (tmp_path / "file").write_text("x")
        directory = Path(ssh.private_directory())
        ssh.put(tmp_path / "file", f"{directory}/new")
        other = Path(ssh.private_directory())
        assert other != directory
        assert [path.stat().st_mode & 0o777 for path in (directory, other)] == [0o700, 0o700]
        ssh.close()
        assert not directory.exists()
        assert not other.exists()

    def test_close_does_not_wait_for_a_dead_server(self, server: Server) -> None:
        ssh = Ssh(server.host)
        directory = ssh.private_directory()
        for pid in server.children():
            os.kill(pid, signal.SIGSTOP)
        begun = time.monotonic()
        ssh.close()
        assert time.monotonic() - begun < 7
        Path(directory).rmdir()


def sftp_server() -> str:
    places = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
    return next(path for path in places if Path(path).exists())


def test_a_shell_that_says_no_is_quoted(transport: Ssh) -> None:
    error = transport.explain(1, "", "This account is currently not available.\n")
    assert error.what == "the agent did not start in box: exit status 1, it said 'This account is currently not available.'"


def test_the_targets_of_a_host_share_its_connection(server: Server) -> None:
    with Connections() as connections:
        one = connections.transport(Target("a", "host", server.host, None))
        two = connections.transport(Target("b", "ct", server.host, 200))
        exec(one, ["true"])
        exec(two, ["true"])
        assert (type(two), connections.transport(Target("c", "host", server.host, None)) is one) == (Pct, True)
        assert isinstance(connections.transport(Target("here", "local", None, None)), Local)
    assert server.connections() == 1


def test_nothing_is_imported_before_a_host_is_asked_for() -> None:
    assert not imported("fabric paramiko", "import deployctl.transports.connect")
