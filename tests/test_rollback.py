"""`deployctl rollback`: an earlier run's files and command line; a run itself; and what it refuses before anything is touched."""

from __future__ import annotations

from tests.site import DEMO, Site

OLD = (DEMO / "old" / "train_dflash_pipeline.py").read_bytes()
NEW = (DEMO / "train" / "train_dflash_pipeline.py").read_bytes()


def two_runs(site: Site) -> str:
    """A first restart, and a second one that brings another script and one file more; the id of the first."""
    site.restart("--profile-interval", "60")
    first = str(site.target_events()[0]["run"])
    (site.home / "train" / site.script).write_bytes(NEW + b"# second\n")
    (site.home / "train" / "extra.py").write_text("x = 1\n")
    site.restart("--profile-interval", "30")
    return first


def test_the_launch_before_the_last_one_comes_back_with_its_files(site: Site) -> None:
    site.launch_old()
    two_runs(site)
    done = site.run("rollback", site.place.name)
    [now] = site.trainers()
    assert "--profile-interval=60" in now["argv"] and "--profile-interval=30" not in now["argv"], done.stdout
    assert site.place.read(f"{site.directory}/{site.script}") == NEW
    assert not site.place.exists(f"{site.directory}/extra.py")
    assert site.target_events()[-1]["outcome"] == "running"


def test_a_rollback_can_be_rolled_back(local_site: Site) -> None:
    two_runs(local_site)
    local_site.run("rollback", "here")
    local_site.run("rollback", "here")
    [now] = local_site.trainers()
    assert "--profile-interval=30" in now["argv"]
    assert local_site.place.read(f"{local_site.directory}/{local_site.script}") == NEW + b"# second\n"
    assert local_site.place.exists(f"{local_site.directory}/extra.py")


def test_before_the_first_launch_is_what_somebody_had_started_by_hand(local_site: Site) -> None:
    local_site.launch_old("--seed", "7")
    local_site.restart("--profile-interval", "60")
    local_site.run("rollback", "here")
    [now] = local_site.trainers()
    assert now["argv"][-2:] == ["--seed", "7"]
    assert local_site.place.read(f"{local_site.directory}/{local_site.script}") == OLD


def test_a_named_run_is_gone_back_to_over_several(local_site: Site) -> None:
    first = two_runs(local_site)
    local_site.restart("--profile-interval", "10")
    local_site.run("rollback", "here", "--to", first)
    [now] = local_site.trainers()
    assert "--profile-interval=60" in now["argv"]
    assert local_site.place.read(f"{local_site.directory}/{local_site.script}") == NEW


def test_a_plan_and_a_word_that_is_wrong_change_nothing(local_site: Site) -> None:
    two_runs(local_site)
    before = [seen["pid"] for seen in local_site.trainers()]
    assert "extra.py is removed" in local_site.run("rollback", "here", "--plan").stdout
    local_site.run("rollback", "--help")
    local_site.run("rollback", "her", status=2)
    local_site.run("rollback", "here", "--plna", status=2)
    assert "none to go back to" in local_site.run("rollback", "here", "--to", "20250101-000000-aaaa", status=1).stderr
    assert [seen["pid"] for seen in local_site.trainers()] == before


def test_nothing_that_was_launched_is_nothing_to_go_back_to(local_site: Site) -> None:
    local_site.launch_old()
    assert "nothing to go back to" in local_site.run("rollback", "here", status=1).stderr
    assert len(local_site.trainers()) == 1


def test_a_release_that_is_gone_is_refused_before_the_stop(local_site: Site) -> None:
    two_runs(local_site)
    local_site.place.exec("/bin/rm", "-rf", f"{local_site.directory}/.deployctl")
    [was] = local_site.trainers()
    assert "is kept no more" in local_site.run("rollback", "here", status=1).stderr
    assert [seen["pid"] for seen in local_site.trainers()] == [was["pid"]]
