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


def test_a_restart_brings_the_new_files_and_flags_to_life(site: Site) -> None:
    old = site.launch_old()
    done = site.restart("--profile-interval", "60")
    [now] = site.trainers()
    assert now["pid"] != old
    assert now["argv"][1:] == [site.script, "--profile-interval=60", *site.command[2:]]
    assert site.place.read(f"{site.directory}/{site.script}") == (DEMO / "train" / "train_dflash_pipeline.py").read_bytes()
    assert f"train runs as pid {now['pid']}" in done.stdout or f"the workload runs as pid {now['pid']}" in done.stdout
    assert "--profile-interval=60" in done.stdout.splitlines()[-1]
    assert "down for" in done.stdout.splitlines()[-1]
    assert site.staged() == []


def test_the_old_process_was_let_save_its_checkpoint(site: Site) -> None:
    site.launch_old()
    site.restart()
    assert b"leaving" in site.place.read(site.log)
    assert [event["by"] for event in site.events() if event["what"] == "stopped"] == ["INT"]


def test_the_environment_of_the_new_process_is_the_clean_one(site: Site) -> None:
    site.workload = {"environment": {"DFLASH_MODE": "fast"}}
    site.write()
    site.restart()
    [now] = site.trainers()
    environment = {name: text for name, text in now["environment"].items() if not name.startswith("DEPLOYCTL_")}
    shell = environment.pop("SHELL")
    assert environment == {**CLEAN, "DFLASH_MODE": "fast"}
    assert shell.startswith("/")


def test_the_new_process_has_every_signal_at_its_default(site: Site) -> None:
    site.restart()
    [now] = site.trainers()
    masks = dict(line.split(":\t") for line in now["status"].splitlines() if line.startswith("Sig"))
    assert int(masks["SigIgn"], 16) & (1 << signal.SIGINT - 1 | 1 << signal.SIGTERM - 1 | 1 << signal.SIGHUP - 1) == 0
    assert int(masks["SigBlk"], 16) == 0


def test_a_workload_that_does_not_run_is_started(site: Site) -> None:
    done = site.restart("--profile-interval", "60")
    assert "nothing to stop" in done.stdout
    assert len(site.trainers()) == 1


def test_a_second_restart_sends_no_file_and_keeps_one_flag(site: Site) -> None:
    site.restart("--profile-interval", "60")
    site.restart("--profile-interval", "30")
    assert [event["what"] for event in site.events() if event["what"] in ("staged", "unchanged")] == ["unchanged"]
    [now] = site.trainers()
    assert now["argv"][1:] == [site.script, "--profile-interval=30", *site.command[2:]]


def test_the_target_and_the_controller_keep_the_same_events(site: Site) -> None:
    site.restart()
    assert site.target_events() == site.events()
    assert site.events()[0]["what"] == "begin"
    assert site.events()[-1]["what"] == "end"


def test_status_says_what_runs(site: Site) -> None:
    site.restart("--profile-interval", "60")
    [now] = site.trainers()
    done = site.run("status", site.place.name)
    assert f"pid {now['pid']}, since" in done.stdout
    assert "--profile-interval=60" in done.stdout
    assert f"by run {site.events()[0]['run']} (anna@" in done.stdout


def test_the_plan_changes_nothing(site: Site) -> None:
    old = site.launch_old()
    before = site.place.listing(site.directory)
    done = site.restart("--profile-interval", "60", "--plan")
    assert "2 of 2 files differ" in done.stdout
    assert f"pid {old}" in done.stdout
    assert "--profile-interval=60" in done.stdout
    assert [path for path in site.place.listing(site.directory) if path not in before and "checkpoints" not in path] == []
    assert not site.place.exists(site.state)
    assert [seen["pid"] for seen in site.trainers()] == [old]


def test_neither_program_nor_minder_holds_the_lock(site: Site) -> None:
    site.restart()
    probe = "import fcntl, sys; fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    site.place.python(probe, f"{site.state}/workloads/train/lock")


def test_a_killed_minder_leaves_the_program_running(site: Site) -> None:
    site.restart()
    [now] = site.trainers()
    minder = next(line.split()[1] for line in now["status"].splitlines() if line.startswith("PPid"))
    title = site.place.read(f"/proc/{minder}/cmdline").rstrip(b"\0").decode()
    assert title == f"deployctl: minder of train (run {site.events()[0]['run']})"
    site.place.exec("/bin/kill", "-KILL", minder)
    until("the minder is gone", lambda: not site.place.exists(f"/proc/{minder}"))
    assert [seen["pid"] for seen in site.trainers()] == [now["pid"]]


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
