"""From the first signal on the job leads: whoever dies on the way, and whatever fails, the end is a defined one."""

from __future__ import annotations

import json
import signal
import time

from tests.site import DEMO, Site, until

OLD = (DEMO / "old" / "train_dflash_pipeline.py").read_bytes()


def waits_for_the_stop(site: Site) -> bool:
    return any(event["what"] == "rung" for event in site.target_events())


def ended(site: Site) -> bool:
    events = site.target_events()
    return bool(events) and events[-1]["what"] == "end"


def test_a_controller_killed_in_the_stop_leaves_the_workload_restarted(every_site: Site) -> None:
    old = every_site.launch_old("--save-time", "8")
    with every_site.start("restart", every_site.place.name, "--profile-interval", "60") as controller:
        until("the stop has begun", lambda: waits_for_the_stop(every_site))
        controller.send_signal(signal.SIGKILL)
        controller.communicate()
    assert [seen["pid"] for seen in every_site.trainers()] == [old]
    until("the job came to its end", lambda: ended(every_site), 30)
    [now] = every_site.trainers()
    assert now["pid"] != old
    assert "--profile-interval=60" in now["argv"]
    assert every_site.target_events()[-1]["status"] == 0
    assert b"leaving" in every_site.place.read(every_site.log)


def test_ctrl_c_in_the_stop_detaches_and_the_job_goes_on(site: Site) -> None:
    site.launch_old("--save-time", "6")
    with site.start("restart", site.place.name) as controller:
        until("the stop has begun", lambda: waits_for_the_stop(site))
        controller.send_signal(signal.SIGINT)
        out, err = controller.communicate(timeout=30)
    assert controller.returncode == 7, (out, err)
    assert b"the job goes on" in out
    until("the job came to its end", lambda: ended(site), 30)
    assert len(site.trainers()) == 1
    assert site.target_events()[-1]["status"] == 0


def test_a_second_run_is_told_who_holds_the_workload(site: Site) -> None:
    old = site.launch_old("--save-time", "600")
    site.ladder = ["INT 10m"]
    site.write()
    with site.start("restart", site.place.name) as first:
        until("the stop has begun", lambda: waits_for_the_stop(site))
        run = site.events()[0]["run"]
        second = site.restart(status=6)
        site.place.exec("/bin/kill", "-KILL", str(old))
        first.communicate(timeout=60)
    assert "anna@" in second.stdout
    assert run in second.stdout
    assert first.returncode == 0
    assert len(site.trainers()) == 1


def test_a_program_that_dies_at_once_brings_back_the_old_files_and_process(site: Site) -> None:
    old = site.launch_old("--seed", "7")
    [was] = site.trainers()
    (site.home / "train" / site.script).write_text("raise SystemExit('out of luck')\n")
    done = site.restart("--profile-interval", "60", status=1)
    [now] = site.trainers()
    assert now["pid"] != old
    assert (now["argv"], now["cwd"]) == (was["argv"], was["cwd"])
    kept = {name: text for name, text in was["environment"].items() if not name.startswith(("DEPLOYCTL_", "SSH_", "TMUX"))}
    assert {name: text for name, text in now["environment"].items() if not name.startswith("DEPLOYCTL_")} == kept
    assert site.place.read(f"{site.directory}/{site.script}") == OLD
    assert "out of luck" in done.stdout
    assert "status 1" in done.stdout
    assert site.events()[-1]["outcome"] == "rolled-back"


def test_a_log_without_the_line_brings_back_the_old_process(site: Site) -> None:
    site.launch_old()
    site.check = {"alive": "1s", "log": "never written", "within": "2s"}
    site.write()
    done = site.restart("--profile-interval", "60", status=1)
    [now] = site.trainers()
    assert "--profile-interval=60" not in now["argv"]
    assert "no line of the log matches 'never written'" in done.stdout


def test_when_the_old_one_cannot_come_back_the_run_says_down(site: Site) -> None:
    site.command = ["/bin/sh", "-c", f"exec python3 {site.script}"]
    marker = f"{site.directory}/broken"
    body = f"import os, time\nif os.path.exists({marker!r}): raise SystemExit('no')\nprint('step 1', flush=True)\ntime.sleep(600)\n"
    site.place.write(f"{site.directory}/{site.script}", body.encode())
    site.command = ["python3", site.script]
    site.launch_old()
    (site.home / "train" / site.script).write_text(f"open({marker!r}, 'w').close()\nraise SystemExit('no')\n")
    site.write()
    done = site.restart(status=5)
    assert site.trainers() == []
    assert "DOWN" in done.stdout.splitlines()[-1]


def test_leave_does_not_roll_back(site: Site) -> None:
    site.launch_old()
    site.check = {"alive": "1s", "log": "never written", "within": "2s"}
    site.write(on_failure="leave")
    site.restart("--profile-interval", "60", status=1)
    [now] = site.trainers()
    assert "--profile-interval=60" in now["argv"]
    assert site.events()[-1]["outcome"] == "left"


def test_a_process_that_ignores_int_does_not_cost_the_rung(site: Site) -> None:
    site.launch_old(deaf=True)
    site.ladder = ["INT 60s", "TERM 10s"]
    site.write()
    began = time.monotonic()
    done = site.restart()
    assert time.monotonic() - began < 40
    assert "INT skipped: signal-ignored" in done.stdout
    assert len(site.trainers()) == 1


def test_a_process_that_does_not_stop_ends_with_status_4_and_a_verdict(site: Site) -> None:
    old = site.launch_old(deaf=True)
    site.ladder = ["INT 5s"]
    site.write()
    done = site.restart(status=4)
    assert [seen["pid"] for seen in site.trainers()] == [old]
    assert "signal-ignored" in done.stdout
    assert site.place.read(f"{site.directory}/{site.script}") == OLD
    assert site.staged() == []


def test_quiet_says_nothing_of_a_good_run_and_everything_of_a_bad_one(local_site: Site) -> None:
    done = local_site.restart("--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    (local_site.home / "train" / "throughput.py").write_text("def broken(:\n")
    done = local_site.restart("--quiet", status=1)
    assert done.stdout == ""
    assert "throughput.py:1: " in done.stderr


def test_json_prints_the_events(local_site: Site) -> None:
    done = local_site.restart("--json")
    assert [json.loads(line) for line in done.stdout.splitlines()] == local_site.events()
