"""The main job on a target of each kind: `deployctl restart TARGET --profile-interval 60`, and what is there afterwards."""

from __future__ import annotations

import signal

import pytest

from tests.site import DEMO, Site, until

CLEAN = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "USER": "root",
    "LOGNAME": "root",
    "LANG": "C.UTF-8",
    "PYTHONUNBUFFERED": "1",
}


def test_a_restart_brings_the_new_files_and_flags_to_life(every_site: Site) -> None:
    old = every_site.launch_old()
    done = every_site.restart("--profile-interval", "60")
    [now] = every_site.trainers()
    assert now["pid"] != old
    assert now["argv"][1:] == [every_site.script, "--profile-interval=60", *every_site.command[2:]]
    there = every_site.place.read(f"{every_site.directory}/{every_site.script}")
    assert there == (DEMO / "train" / "train_dflash_pipeline.py").read_bytes()
    assert f"train runs as pid {now['pid']}" in done.stdout or f"the workload runs as pid {now['pid']}" in done.stdout
    assert "--profile-interval=60" in done.stdout.splitlines()[-1]
    assert "down for" in done.stdout.splitlines()[-1]
    assert every_site.staged() == []


def test_the_old_process_was_let_save_its_checkpoint(every_site: Site) -> None:
    every_site.launch_old()
    every_site.restart()
    assert b"leaving" in every_site.place.read(every_site.log)
    assert [event["by"] for event in every_site.events() if event["what"] == "stopped"] == ["INT"]


def test_the_environment_of_the_new_process_is_the_clean_one(every_site: Site) -> None:
    every_site.workload = {"environment": {"DFLASH_MODE": "fast"}}
    every_site.write()
    every_site.restart()
    [now] = every_site.trainers()
    environment = {name: text for name, text in now["environment"].items() if not name.startswith("DEPLOYCTL_")}
    shell = environment.pop("SHELL")
    assert environment == {**CLEAN, "DFLASH_MODE": "fast"}
    assert shell.startswith("/")


def test_the_new_process_has_every_signal_at_its_default(every_site: Site) -> None:
    every_site.restart()
    [now] = every_site.trainers()
    masks = dict(line.split(":\t") for line in now["status"].splitlines() if line.startswith("Sig"))
    assert int(masks["SigIgn"], 16) & (1 << signal.SIGINT - 1 | 1 << signal.SIGTERM - 1 | 1 << signal.SIGHUP - 1) == 0
    assert int(masks["SigBlk"], 16) == 0


def test_a_workload_that_does_not_run_is_started(every_site: Site) -> None:
    done = every_site.restart("--profile-interval", "60")
    assert "nothing to stop" in done.stdout
    assert len(every_site.trainers()) == 1


def test_a_second_restart_sends_no_file_and_keeps_one_flag(every_site: Site) -> None:
    every_site.restart("--profile-interval", "60")
    every_site.restart("--profile-interval", "30")
    assert [event["what"] for event in every_site.events() if event["what"] in ("staged", "unchanged")] == ["unchanged"]
    [now] = every_site.trainers()
    assert now["argv"][1:] == [every_site.script, "--profile-interval=30", *every_site.command[2:]]


def test_the_target_and_the_controller_keep_the_same_events(every_site: Site) -> None:
    every_site.restart()
    assert every_site.target_events() == every_site.events()
    assert every_site.events()[0]["what"] == "begin"
    assert every_site.events()[-1]["what"] == "end"


def test_status_says_what_runs(every_site: Site) -> None:
    every_site.restart("--profile-interval", "60")
    [now] = every_site.trainers()
    done = every_site.run("status", every_site.place.name)
    assert f"pid {now['pid']}, since" in done.stdout
    assert "--profile-interval=60" in done.stdout
    assert f"by run {every_site.events()[0]['run']} (anna@" in done.stdout


def test_the_plan_changes_nothing(every_site: Site) -> None:
    old = every_site.launch_old()
    before = every_site.place.listing(every_site.directory)
    done = every_site.restart("--profile-interval", "60", "--plan")
    assert "2 of 2 files differ" in done.stdout
    assert f"pid {old}" in done.stdout
    assert "--profile-interval=60" in done.stdout
    assert [path for path in every_site.place.listing(every_site.directory) if path not in before and "checkpoints" not in path] == []
    assert not every_site.place.exists(every_site.state)
    assert [seen["pid"] for seen in every_site.trainers()] == [old]


def test_neither_program_nor_minder_holds_the_lock(every_site: Site) -> None:
    every_site.restart()
    probe = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    every_site.place.python(probe, f"{every_site.state}/workloads/train/lock")


def test_a_killed_minder_leaves_the_program_running(every_site: Site) -> None:
    every_site.restart()
    [now] = every_site.trainers()
    minder = next(line.split()[1] for line in now["status"].splitlines() if line.startswith("PPid"))
    title = every_site.place.read(f"/proc/{minder}/cmdline").rstrip(b"\0").decode()
    assert title == f"deployctl: minder of train (run {every_site.events()[0]['run']})"
    every_site.place.exec("/bin/kill", "-KILL", minder)
    until("the minder is gone", lambda: not every_site.place.exists(f"/proc/{minder}"))
    assert [seen["pid"] for seen in every_site.trainers()] == [now["pid"]]


@pytest.mark.lab
@pytest.mark.serial
def test_one_restart_costs_one_connection_one_exec_and_one_push(ct_site: Site) -> None:
    ct_site.launch_old()
    lab = ct_site.lab
    assert lab is not None
    connections, calls = lab.connections(), len(lab.calls())
    ct_site.restart("--profile-interval", "60")
    assert lab.connections() - connections == 1
    assert [call["argv"][0] for call in lab.calls()[calls:]] == ["exec", "push"]
