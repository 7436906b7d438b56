"""`deployctl status` where deployctl has launched nothing yet."""

from __future__ import annotations

from tests.site import Site


def test_a_workload_that_a_playbook_alone_knows_is_said_not_to_run(local_site: Site) -> None:
    never = "here:train: does not run; deployctl never launched it here\n"
    assert local_site.run("status", "here").stdout == never
    assert local_site.run("status", "here:train").stdout == never


def test_a_workload_that_nobody_knows_is_an_error_that_says_what_to_do(local_site: Site) -> None:
    assert "do: known: train" in local_site.run("status", "here:other", status=1).stderr
    (local_site.home / "playbooks" / "restart.yaml").unlink()
    assert "no playbook names one" in local_site.run("status", "here").stdout
    assert "do: write a playbook that names it" in local_site.run("status", "here:other", status=1).stderr
