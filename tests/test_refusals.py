"""A refusal is clear: a message that says where, what and what to do, the right exit status, and everything as it was."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.site import Site, until


def everything(site: Site) -> list[str]:
    """Files of the target without those that the running trainer itself writes."""
    return [path for path in site.place.listing(site.directory) if "checkpoints" not in path]


@pytest.fixture
def running(site: Site) -> Site:
    """A site whose old trainer runs."""
    site.launch_old()
    return site


def refused(site: Site, *words: str, status: int) -> str:
    """Runs a restart that must be refused; asserts that nothing changed; returns what it said."""
    before, pids = everything(site), [seen["pid"] for seen in site.trainers()]
    done = site.restart(*words, status=status)
    assert everything(site) == before
    assert [seen["pid"] for seen in site.trainers()] == pids
    return done.stdout + done.stderr


def test_a_file_that_does_not_compile_is_named_with_its_line(running: Site) -> None:
    (running.home / "train" / "throughput.py").write_text("def broken(:\n    pass\n")
    said = refused(running, status=1)
    assert "throughput.py:1: " in said
    assert "do: /usr/bin/python3" in said


def test_two_unrelated_processes_are_listed_and_not_signalled(running: Site) -> None:
    second = running.launch_old(wait=False)
    said = refused(running, status=1)
    assert f"{second}" in said
    assert len(running.trainers()) == 2


def test_a_match_with_a_slip_starts_nothing_twice(running: Site) -> None:
    running.workload = {"match": "another_script.py"}
    running.write()
    [old] = running.trainers()
    said = refused(running, status=1)
    assert f"pid {old['pid']} runs the script of 'train' in its directory, and `match` does not find it" in said
    assert "`match` does not find it" in running.run("restart", running.place.name, "--plan", status=1).stdout


def test_a_match_that_tells_runs_of_one_script_apart_starts_a_second_one(local_site: Site) -> None:
    local_site.launch_old()
    local_site.command += ["--seed", "7"]
    local_site.workload = {"match": ["python3", local_site.script, "--seed", "7"]}
    local_site.write()
    local_site.restart()
    assert len(local_site.trainers()) == 2


def test_a_program_that_is_not_there_is_refused(running: Site) -> None:
    running.command = ["python9", *running.command[1:]]
    running.write()
    assert "there is no program 'python9'" in refused(running, status=1)


def test_another_interpreter_than_the_running_one_is_refused(site: Site) -> None:
    venv = f"{site.directory}/venv"
    site.place.write(f"{venv}/pyvenv.cfg", b"home = /usr/bin\n")
    site.place.exec("/bin/mkdir", "-p", f"{venv}/bin")
    site.place.exec("/bin/ln", "-s", "/usr/bin/python3", f"{venv}/bin/python3")
    site.command[0] = f"{venv}/bin/python3"
    site.launch_old()
    site.command[0] = "python3"
    said = refused(site, status=1)
    assert f"the running process uses {venv}/bin/python3" in said
    assert "would start /usr/bin/python3" in said


def test_a_push_of_what_does_not_exist_contacts_nothing(local_site: Site) -> None:
    local_site.write(steps=[{"push": {"from": "../nowhere", "to": local_site.directory}}])
    assert "'../nowhere' does not exist" in refused(local_site, status=2)
    assert not local_site.place.exists(local_site.state)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["restart", "here", "--plna"], "did you mean '--plan'?"),
        (["restart", "here", "--profile-intervl", "60"], "did you mean '--profile-interval'?"),
        (["restart", "--profile-intervl", "60", "here"], "did you mean '--profile-interval'?"),
        (["restart", "here", "--profile-interval", "soon"], "'soon' is no whole number"),
        (["restart", "here", "--profile-interval", "-5"], "'-5' is below 0"),
        (["restart", "hre"], "did you mean 'here'?"),
        (["restrat", "here"], "did you mean 'restart'"),
        (["restart"], "missing argument"),
    ],
)
def test_a_wrong_word_is_an_error_with_a_suggestion(local_site: Site, words: list[str], said: str) -> None:
    done = local_site.run(*words, status=2)
    assert said in done.stderr
    assert not local_site.place.exists(local_site.state)
    assert local_site.events() == []


def write_targets(site: Site, text: str) -> None:
    (site.home / "hosts.yaml").write_text(text)


@pytest.mark.lab
@pytest.mark.parametrize(
    ("target", "what", "todo"),
    [
        ("ct202", "container 202 is not running on pve1", "do: start it with `pct start 202`"),
        ("ct999", "container 999 does not exist on pve1", "do: mend `ct:`"),
        ("ct203", "no python3 in container 203", "do: install python3"),
    ],
)
def test_a_container_that_cannot_be_used_is_explained(local_site: Site, lab: Lab, target: str, what: str, todo: str) -> None:
    write_targets(local_site, lab.hosts_file.read_text())
    done = local_site.run("restart", target, status=3)
    assert what in done.stdout
    assert todo in done.stdout
    assert local_site.events()[-1]["outcome"] == "unreachable"


@pytest.mark.lab
@pytest.mark.serial
@pytest.mark.parametrize(
    ("alias", "what"),
    [("unreachable", "refused"), ("unknown-key", "host key"), ("wrong-key", "host key")],
)
def test_a_host_that_cannot_be_trusted_or_reached_is_explained(local_site: Site, lab: Lab, alias: str, what: str) -> None:
    hosts = f"hosts: {{odd: {{ssh: {alias}, ssh_config: '{lab.ssh_config}'}}}}\ntargets: {{ct200: {{host: odd, ct: 200}}}}\n"
    write_targets(local_site, hosts)
    calls = len(lab.calls())
    done = local_site.run("restart", "ct200", status=3)
    assert what in done.stdout
    assert len(lab.calls()) == calls


@pytest.mark.lab
def test_python_is_found_where_the_target_says(ct_site: Site) -> None:
    ct_site.place.exec("/bin/mkdir", "-p", f"{ct_site.directory}/py")
    ct_site.place.exec("/bin/cp", "/usr/bin/python3", f"{ct_site.directory}/py/python")
    ct_site.target = {"python": f"{ct_site.directory}/py/python"}
    ct_site.write()
    ct_site.restart()
    assert f"({ct_site.directory}/py/python)" in ct_site.restart().stdout


def test_a_workload_without_hosts_file_is_told_where_to_write_one(tmp_path: Path) -> None:
    (tmp_path / "playbooks").mkdir()
    words = [sys.executable, "-m", "deployctl", "status", "ct200"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "there is no hosts file" in done.stderr


def test_the_group_runs_one_after_the_other_and_the_worst_status_wins(local_site: Site) -> None:
    hosts = {"here": f"{{local: true, state: {local_site.state}}}", "odd": "{local: true, python: /nowhere/python3}"}
    text = "targets:\n" + "".join(f"  {name}: {target}\n" for name, target in hosts.items()) + "groups:\n  all: [odd, here]\n"
    write_targets(local_site, text)
    done = local_site.run("restart", "all", status=3)
    assert "no /nowhere/python3" in done.stdout or "'/nowhere/python3'" in done.stdout
    until("the other target was restarted", local_site.trainers)
