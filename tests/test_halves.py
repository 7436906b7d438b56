"""`deployctl stop` and `deployctl start`: one half of a playbook, no push, and words that are not clear change nothing."""

from __future__ import annotations

import json

from tests.site import DEMO, Site

OLD = (DEMO / "old" / "train_dflash_pipeline.py").read_bytes()


def test_stop_ends_the_workload_and_start_runs_it_as_the_playbook_says(site: Site) -> None:
    site.launch_old()
    done = site.run("stop", site.place.name)
    assert "the workload is stopped" in done.stdout and site.trainers() == []
    site.run("start", f"{site.place.name}:train", "--", "--profile-interval=9")
    [now] = site.trainers()
    assert "--profile-interval=9" in now["argv"]
    assert site.place.read(f"{site.directory}/{site.script}") == OLD


def test_start_keeps_the_flags_of_the_last_launch_and_stop_drops_none(local_site: Site) -> None:
    local_site.check = {"alive": "300ms"}
    local_site.write()
    local_site.restart("--profile-interval", "60")
    local_site.run("stop", "here")
    assert [event for event in local_site.events() if event["what"] == "flags"] == []
    done = local_site.run("start", "here")
    [now] = local_site.trainers()
    assert "--profile-interval=60" in now["argv"]
    assert "kept --profile-interval 60, from the last launch" in done.stdout


def test_start_of_what_runs_leaves_it_alone(local_site: Site) -> None:
    old = local_site.launch_old()
    done = local_site.run("start", "here")
    assert "it runs already" in done.stdout
    assert [seen["pid"] for seen in local_site.trainers()] == [old]


def test_a_plan_of_a_stop_changes_nothing(local_site: Site) -> None:
    old = local_site.launch_old()
    done = local_site.run("stop", "here", "--plan")
    assert "INT for up to" in done.stdout and "push" not in done.stdout and "compared" not in done.stdout
    assert [seen["pid"] for seen in local_site.trainers()] == [old]


def test_two_workloads_must_be_told_apart(local_site: Site) -> None:
    path = local_site.home / "playbooks" / "restart.yaml"
    other = json.loads(path.read_text())
    other["workload"]["name"] = "serve"
    path.with_name("serve.yaml").write_text(json.dumps(other))
    done = local_site.run("stop", "here", status=2)
    assert "here:serve, here:train" in done.stderr
    assert "did you mean 'serve'?" in local_site.run("stop", "here:serv", status=2).stderr


def test_two_ladders_of_one_workload_must_be_told_apart(local_site: Site) -> None:
    path = local_site.home / "playbooks" / "restart.yaml"
    other = json.loads(path.read_text())
    other["steps"][2] = {"stop": ["TERM 5s"]}
    path.with_name("hard.yaml").write_text(json.dumps(other))
    assert "--playbook" in local_site.run("stop", "here", status=2).stderr
    assert "nothing to stop" in local_site.run("stop", "here", "--playbook", "hard").stdout
