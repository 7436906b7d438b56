"""The job and its run: lingering, cancelled, killed and begun anew, followed from elsewhere, finished by the next run."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deployctl import journal
from tests.site import DEMO, Site, until

NEW = (DEMO / "train" / "train_dflash_pipeline.py").read_bytes()
OLD = (DEMO / "old" / "train_dflash_pipeline.py").read_bytes()


def happened(site: Site, what: str) -> list[dict[str, Any]]:
    return [event for event in site.target_events() if event["what"] == what]


def in_the_stop(site: Site) -> dict[str, Any]:
    """Waits until the first signal has gone out; the event of the job's birth."""
    until("the stop has begun", lambda: happened(site, "rung"))
    return happened(site, "cutover")[-1]


def kill(site: Site, pid: int) -> None:
    site.place.exec("/bin/kill", "-KILL", str(pid))


def ended(site: Site) -> dict[str, Any]:
    return until("the run has an end", lambda: happened(site, "end"), 40)[-1]


def test_a_killed_job_is_begun_anew_while_somebody_follows(site: Site) -> None:
    old = site.launch_old("--save-time", "6")
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        kill(site, in_the_stop(site)["job_pid"])
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 0, out.decode()
    assert b"was killed; it is begun anew" in out
    assert len(happened(site, "rung")) == 1, "a second INT would cut the checkpoint"
    [now] = site.trainers()
    assert now["pid"] != old
    assert "--profile-interval=60" in now["argv"]


def orphan(site: Site) -> str:
    """A run whose controller, session and job were killed in the stop, as the old process was then; its id."""
    old = site.launch_old("--save-time", "600")
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        job = in_the_stop(site)["job_pid"]
        kill(site, session_of(site, job))
        kill(site, job)
        kill(site, old)
        controller.send_signal(signal.SIGKILL)
        controller.communicate()
    until("the old process is gone", lambda: old not in [seen["pid"] for seen in site.trainers()])
    return str(happened(site, "begin")[0]["run"])


def test_resume_brings_a_run_without_an_end_to_one(site: Site) -> None:
    run = orphan(site)
    for words in (("status", site.place.name), ("why", site.place.name), ("restart", site.place.name, "--plan")):
        assert f"run {run} has no end: it was killed in stop" in site.run(*words).stdout
    assert "no end: it was killed in stop" in site.run("history", "--on", site.place.name).stdout
    done = site.run("attach", run, "--on", site.place.name, status=5)
    assert f"deployctl resume {run}" in done.stderr
    site.run("resume", run, "--on", site.place.name)
    [now] = site.trainers()
    assert "--profile-interval=60" in now["argv"]
    assert site.place.read(f"{site.directory}/{site.script}") == NEW


def test_a_job_that_is_killed_in_the_undo_sends_no_second_signal(site: Site) -> None:
    """The new program saves when it is stopped for the rollback; a second INT would cut that."""
    site.launch_old()
    site.command += ["--save-time", "3"]
    site.check = {"log": "what no trainer writes", "within": "1s"}
    site.write()
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        until("the new one is being stopped", lambda: len(happened(site, "signalled")) == 2)
        kill(site, happened(site, "cutover")[-1]["job_pid"])
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 1, out.decode()
    assert [event["signal"] for event in happened(site, "rung")] == ["INT", "INT"]
    assert "Traceback" not in site.place.read(site.log).decode()
    assert ended(site)["outcome"] == "rolled-back"


def test_a_job_that_dies_three_times_leaves_a_run_without_an_end(site: Site) -> None:
    old = site.launch_old("--save-time", "600")
    site.ladder = ["INT 10m"]
    site.write()
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        for life in range(1, 4):
            until("the job is there", lambda life=life: len(happened(site, "cutover")) == life and happened(site, "rung"))
            kill(site, happened(site, "cutover")[-1]["job_pid"])
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 4, out.decode()
    run = happened(site, "begin")[0]["run"]
    assert f"the job of run {run} died in stop; something of the workload runs" in out.decode()
    assert happened(site, "end") == []
    kill(site, old)
    until("the old process is gone", lambda: site.trainers() == [])
    assert f"run {run} has no end" in site.run("status", site.place.name).stdout
    site.run("resume", run, "--on", site.place.name)
    assert "--profile-interval=60" in site.trainers()[0]["argv"]


def test_the_run_that_is_meant_is_the_one_at_work_before_one_that_was_killed_in_prepare(local_site: Site) -> None:
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = ["INT 10m"]
    push = {"push": {"from": "../train", "to": local_site.directory, "include": ["*.py"]}}
    local_site.write(steps=[push, {"verify": {"command": ["sleep", "10"]}}, {"stop": local_site.ladder}, "launch"])
    with local_site.start("restart", "here") as controller:
        until("it is in prepare", lambda: happened(local_site, "begin"))
        assert "at work, in prepare" in local_site.run("history", "--on", "here").stdout
        controller.kill()
        controller.communicate()
    until("the lock is free", lambda: "at work" not in local_site.run("status", "here").stdout)
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        run = in_the_stop(local_site)["run"]
        with local_site.start("cancel", "--on", "here") as person:
            until("the job has heard of it", lambda: happened(local_site, "cancelled"))
            kill(local_site, old)
            out, _ = person.communicate(timeout=60)
        controller.communicate(timeout=60)
    assert (person.returncode, f"run {run} hears of it" in out.decode()) == (0, True)


def test_the_next_run_finishes_a_run_without_an_end_first(site: Site) -> None:
    run = orphan(site)
    done = site.restart("--profile-interval", "30")
    assert f"run {run} has no end" in done.stdout
    [now] = site.trainers()
    assert "--profile-interval=30" in now["argv"]


def test_the_plan_only_says_that_a_run_has_no_end(local_site: Site) -> None:
    run = orphan(local_site)
    local_site.run("restart", "here", "--plan")
    assert local_site.trainers() == []
    assert f"run {run} has no end" in local_site.run("status", "here").stdout


def test_attach_follows_from_another_machine(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    site.launch_old("--save-time", "3")
    with site.start("restart", site.place.name) as controller:
        in_the_stop(site)
        controller.send_signal(signal.SIGKILL)
        controller.communicate()
    other = {**site.environment(), "XDG_STATE_HOME": str(tmp_path_factory.mktemp("other"))}
    words = [sys.executable, "-m", "deployctl", "attach", "--on", site.place.name, "--json"]
    done = subprocess.run(words, cwd=site.home, env=other, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == site.target_events()


def test_a_signal_that_was_taken_makes_the_job_linger_and_go_on(site: Site) -> None:
    old = site.launch_old("--save-time", "600")
    site.ladder = {"ladder": ["INT 1s"], "extend": 0}  # type: ignore[assignment]
    site.write()
    done = site.restart("--profile-interval", "60", status=4)
    assert "the job goes on by itself" in done.stdout
    assert [seen["pid"] for seen in site.trainers()] == [old]
    assert "in stop)" in site.restart(status=6).stdout
    assert "unattended" in site.run("status", site.place.name).stdout
    kill(site, old)  # it ends after all
    assert ended(site)["status"] == 0
    [now] = site.trainers()
    assert "--profile-interval=60" in now["argv"]


def test_linger_0_ends_the_run_at_once(local_site: Site) -> None:
    old = local_site.launch_old("--save-time", "4")
    local_site.ladder = {"ladder": ["INT 1s"], "linger": 0}  # type: ignore[assignment]
    local_site.write()
    local_site.restart(status=4)
    assert ended(local_site)["status"] == 4
    assert [seen["pid"] for seen in local_site.trainers()] in ([old], [])


def test_cancel_in_the_stop_brings_back_what_ran(site: Site) -> None:
    old = site.launch_old("--save-time", "600")
    site.ladder = ["INT 10m"]
    site.write()
    with site.start("restart", site.place.name, "--profile-interval", "60") as controller:
        run = in_the_stop(site)["run"]
        with site.start("cancel", run, "--on", site.place.name) as person:
            until("the job has heard of it", lambda: happened(site, "cancelled"))
            kill(site, old)  # the signal that it took ends it after all
            out, _ = person.communicate(timeout=60)
        controller.communicate(timeout=60)
    assert "cancelled" in out.decode().splitlines()[-1]
    assert ended(site)["outcome"] == "cancelled"
    [now] = site.trainers()
    assert now["pid"] != old, "the signal was taken: the old command line is launched again"
    assert "--profile-interval=60" not in now["argv"]
    assert site.place.read(f"{site.directory}/{site.script}") == OLD
    assert site.staged() == []
    assert controller.returncode == 1


def test_wait_waits_for_the_other_run(local_site: Site) -> None:
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = ["INT 10m"]
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as first:
        in_the_stop(local_site)
        with local_site.start("restart", "here", "--wait", "60s", "--profile-interval", "30") as second:
            assert second.stdout is not None
            assert any(b"waits up to 60 s" in line for line in second.stdout)
            kill(local_site, old)
            second.communicate(timeout=90)
        first.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    [now] = local_site.trainers()
    assert "--profile-interval=30" in now["argv"]


def test_history_lists_runs_of_everybody(site: Site) -> None:
    site.restart()
    site.workload = {"command": ["python9"]}
    site.write()
    site.restart(status=1)
    done = site.run("history", "--on", site.place.name)
    assert [line.split("  ")[-1].split(":")[0] for line in done.stdout.splitlines()] == ["status 0", "status 1"]
    assert "anna@" in done.stdout


@pytest.mark.lab
@pytest.mark.serial
def test_a_freeze_longer_than_the_rung_costs_no_checkpoint(ct_site: Site) -> None:
    ct_site.launch_old("--save-time", "3")
    ct_site.ladder = ["INT 6s", "KILL 5s"]
    ct_site.write()
    lab = ct_site.lab
    assert lab is not None
    with ct_site.start("restart", "ct200") as controller:
        in_the_stop(ct_site)
        lab.freeze(200)
        try:
            subprocess.run(["sleep", "8"], check=True)  # longer than the rung
        finally:
            lab.thaw(200)
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 0, out.decode()
    assert b"leaving" in ct_site.place.read(ct_site.log)
    assert [event["signal"] for event in happened(ct_site, "rung")] == ["INT"]


def cancelled_in_the_stop(site: Site) -> tuple[int, subprocess.Popen[bytes]]:
    """A run that was taken back in its stop and lingers, with the controller that follows it; the pid of the old process."""
    old = site.launch_old("--save-time", "600")
    site.ladder = ["INT 10m"]
    site.write()
    controller = site.start("restart", site.place.name, "--profile-interval", "60")
    run = in_the_stop(site)["run"]
    with site.start("cancel", run, "--on", site.place.name) as person:
        until("the job lingers", lambda: happened(site, "lingering"))
        person.send_signal(signal.SIGKILL)
        person.communicate()
    return old, controller


def session_of(site: Site, job: int) -> int:
    status = site.place.read(f"/proc/{job}/status").decode()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid")))


def test_a_cancelled_run_whose_job_is_killed_lingers_on(site: Site) -> None:
    old, controller = cancelled_in_the_stop(site)
    with controller:
        kill(site, happened(site, "cutover")[-1]["job_pid"])
        again = until("the next life lingers", lambda: happened(site, "lingering")[1:])[0]
        until("it waits", lambda: [event for event in happened(site, "waiting") if event["t"] > again["t"]])
        kill(site, old)
        assert ended(site)["outcome"] == "cancelled"
        controller.communicate(timeout=60)
    assert controller.returncode == 1
    assert happened(site, "stopped")[-1]["by"] == "INT"
    [now] = site.trainers()
    assert "--profile-interval=60" not in now["argv"]
    assert site.staged() == []


def test_a_cancelled_run_comes_to_its_end_when_the_process_ended_without_a_job(site: Site) -> None:
    old, controller = cancelled_in_the_stop(site)
    with controller:
        job = happened(site, "cutover")[-1]["job_pid"]
        kill(site, session_of(site, job))
        kill(site, job)
        kill(site, old)
        controller.send_signal(signal.SIGKILL)
        controller.communicate()
    until("the old process is gone", lambda: not site.trainers())
    site.run("resume", str(happened(site, "begin")[0]["run"]), "--on", site.place.name, status=1)
    assert ended(site)["outcome"] == "cancelled"
    [now] = site.trainers()
    assert "--profile-interval=60" not in now["argv"]


def test_a_job_begun_anew_knows_what_was_launched_without_its_record(local_site: Site) -> None:
    local_site.check["alive"] = "4s"
    local_site.write()
    with local_site.start("restart", "here") as controller:
        until("the check has begun", lambda: [event for event in happened(local_site, "op") if event["op"] == "check"])
        record = Path(local_site.state, "workloads", "train", "record.json")
        record.unlink()
        kill(local_site, happened(local_site, "cutover")[-1]["job_pid"])
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 0, out.decode()
    [now] = local_site.trainers()
    assert json.loads(record.read_text())["pid"] == now["pid"]
    assert now["pid"] == happened(local_site, "launched")[0]["pid"]


def test_a_program_that_ended_while_no_job_was_at_work_has_failed_its_check(local_site: Site) -> None:
    local_site.launch_old()
    local_site.check["alive"] = "20s"
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        until("the check has begun", lambda: [event for event in happened(local_site, "op") if event["op"] == "check"])
        job = happened(local_site, "cutover")[-1]["job_pid"]
        os.kill(job, signal.SIGSTOP)
        kill(local_site, happened(local_site, "launched")[0]["pid"])
        until("it is gone", lambda: not local_site.trainers())
        kill(local_site, job)
        out, _ = controller.communicate(timeout=60)
    assert controller.returncode == 1, out.decode()
    assert "ended after" in happened(local_site, "failed")[0]["why"]
    assert ended(local_site)["outcome"] == "rolled-back"


def test_the_metric_of_an_earlier_life_is_in_the_end(local_site: Site) -> None:
    metric = {"metric": {"log": r"loss ([\d.]+)", "name": "loss", "at_least": 0}, "within": "30s"}
    local_site.write(steps=[{"stop": local_site.ladder}, "launch", {"check": metric}, {"check": {"alive": "4s", "within": "30s"}}])
    with local_site.start("restart", "here") as controller:
        until("the second check has begun", lambda: [event for event in happened(local_site, "op") if event["index"] == 3])
        kill(local_site, happened(local_site, "cutover")[-1]["job_pid"])
        controller.communicate(timeout=60)
    assert [found["name"] for found in ended(local_site)["metrics"]] == ["loss"]


def test_the_end_of_a_linger_is_said_in_the_record(local_site: Site) -> None:
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = {"ladder": ["INT 1s"], "extend": 0, "linger": "2s"}  # type: ignore[assignment]
    local_site.write()
    local_site.restart(status=4)
    end = ended(local_site)
    assert (end["status"], end["outcome"]) == (4, "not-stopped")
    assert "after a linger of 2 s" in end["reason"]
    assert [seen["pid"] for seen in local_site.trainers()] == [old]


def test_a_cancelled_run_lingers_whatever_the_playbook_says(local_site: Site) -> None:
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = {"ladder": ["INT 10m"], "linger": 0}  # type: ignore[assignment]
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        in_the_stop(local_site)
        with local_site.start("cancel", "--on", "here") as person:
            assert until("the job lingers", lambda: happened(local_site, "lingering"))[0]["seconds"] == 3600
            kill(local_site, old)
            person.communicate(timeout=60)
        controller.communicate(timeout=60)
    assert person.returncode == 0
    [now] = local_site.trainers()
    assert "--profile-interval=60" not in now["argv"]


def test_cancel_of_a_dead_job_names_resume(local_site: Site) -> None:
    run = orphan(local_site)
    done = local_site.run("cancel", run, "--on", "here", status=1)
    assert "was killed in stop" in done.stderr
    assert f"deployctl resume {run}" in done.stderr


def test_cancel_in_prepare_says_who_leads_it(local_site: Site) -> None:
    local_site.write(steps=[{"verify": {"command": ["sleep", "30"]}}, {"stop": local_site.ladder}, "launch"])
    with local_site.start("restart", "here") as controller:
        [begun] = until("the run has begun", lambda: happened(local_site, "begin"))
        done = local_site.run("cancel", begun["run"], "--on", "here", status=1)
        controller.send_signal(signal.SIGINT)
        controller.communicate(timeout=60)
    assert "is in prepare, led by anna@" in done.stderr
    assert "interrupt it there" in done.stderr


def test_what_follows_a_torn_line_is_not_lost(local_site: Site) -> None:
    run = orphan(local_site)
    with Path(local_site.state, "workloads", "train", "runs", f"{run}.jsonl").open("ab") as out:
        out.write(b'{"v":1,"t":17959')
    local_site.run("resume", run, "--on", "here")
    words = [event["what"] for event in whole(local_site)]
    assert words.count("cutover") == 2
    assert words[-1] == "end"


def whole(site: Site) -> list[dict[str, Any]]:
    """The events of the last run whose lines are whole."""
    return journal.read(sorted(Path(site.state, "workloads", "train", "runs").glob("*.jsonl"))[-1])


def test_an_end_that_could_not_be_written_leaves_a_run_to_resume(local_site: Site) -> None:
    """A limit on the size of what the job writes stands for a disk without room."""
    local_site.check["alive"] = "4s"
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        until("the check has begun", lambda: [event for event in happened(local_site, "op") if event["op"] == "check"])
        job, run = happened(local_site, "cutover")[-1]["job_pid"], happened(local_site, "begin")[0]["run"]
        events = Path(local_site.state, "workloads", "train", "runs", f"{run}.jsonl")
        resource.prlimit(job, resource.RLIMIT_FSIZE, (events.stat().st_size, resource.RLIM_INFINITY))
        kill(local_site, session_of(local_site, job))
        controller.send_signal(signal.SIGKILL)
        controller.communicate()
    until("the job is over", lambda: not Path(f"/proc/{job}").exists())
    assert happened(local_site, "end") == []
    assert f"run {run} has no end: it was killed in check" in local_site.run("status", "here").stdout
    local_site.run("resume", run, "--on", "here")
    assert ended(local_site)["status"] == 0
    assert len(happened(local_site, "launched")) == 1


def test_a_stop_that_cannot_go_on_after_its_signal_does_not_say_that_nothing_was_changed(local_site: Site) -> None:
    """A second trainer that somebody starts meanwhile: a job begun anew cannot tell which of them is meant."""
    old = local_site.launch_old("--save-time", "600")
    local_site.ladder = ["INT 10m"]
    local_site.write()
    with local_site.start("restart", "here", "--profile-interval", "60") as controller:
        job = in_the_stop(local_site)["job_pid"]
        stranger = local_site.launch_old()
        kill(local_site, job)
        controller.communicate(timeout=60)
    assert controller.returncode == 4
    assert (ended(local_site)["status"], ended(local_site)["outcome"]) == (4, "not-stopped")
    assert sorted(seen["pid"] for seen in local_site.trainers()) == sorted([old, stranger])
