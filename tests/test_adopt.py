"""`deployctl adopt`: a first playbook from what runs, and a restart with it that changes nothing but what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployctl import draft, playbook
from deployctl.errors import RefusedError
from tests.site import Site

FOUND: dict[str, Any] = {
    "argv": ["python3", "t.py"], "directory": "/srv/a b", "user": None, "program": "/v/bin/python3", "prefix": "/v", "log": None,
    "environment": {}, "names": [], "notes": [],
}  # fmt: skip


def drafted(tmp_path: Path, **found: Any) -> tuple[str, playbook.LoadedPlaybook]:
    text = draft.playbook("train", "t.py", {**FOUND, **found}, ("wait",))
    (tmp_path / "train.yaml").write_text(text)
    return text, playbook.load(tmp_path / "train.yaml")


def test_every_word_is_read_back_as_it_was(tmp_path: Path) -> None:
    odd = ["", " x ", "two\nlines", "Grüße", "'", '"', "\\", "#a", "a: b", "- x", "yes", "null", "~", "0644", "1e4", "-", "--", "[a", "{a}"]
    odd += ["*a", "&a", "!a", "|", ">", "%a", "@a", "`", "=", "<<", "22:22", "\t", "\x1b[31m", "--- a", "\u2028", "\ufeff", "'''", "a #b"]
    odd += ["?", "a,b"]
    _, loaded = drafted(tmp_path, argv=["python3", *odd], environment={"A": "x: y", "B": "\n"}, log="/srv/a b/logs/x y.log")
    assert loaded.model.workload.command == ("/v/bin/python3", *odd)
    assert loaded.model.workload.environment == {"A": "x: y", "B": "\n"}
    assert (loaded.model.workload.directory, loaded.model.workload.log) == ("/srv/a b", "logs/x y.log")


def test_options_with_numbers_become_flags(tmp_path: Path) -> None:
    argv = "python3 t.py --steps 5 --lr=1e-4 --max_len -3 --wait 1 --name x --amp --seed 1 --seed 2.5 -b 4 -- --behind 1".split()  # noqa: SIM905
    _, loaded = drafted(tmp_path, argv=argv)
    kinds = [(flag.name, flag.type, flag.option) for flag in loaded.flags]
    expected = [("steps", "int", ""), ("lr", "float", ""), ("max-len", "int", ""), ("wait", "int", "train-wait"), ("seed", "float", "")]
    assert kinds == expected


def test_what_will_be_otherwise_is_told(tmp_path: Path) -> None:
    text, _ = drafted(tmp_path, notes=list(draft.NOTES), names=["HF_TOKEN"], user="anna")
    assert all(note in text for note in draft.NOTES.values())
    assert "HF_TOKEN" in text
    assert "user: anna" in text


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="is no UTF-8 text"):
        drafted(tmp_path, argv=["python3", "\udcff"])


def test_an_adopted_process_is_restarted_with_one_flag_changed(local_site: Site) -> None:
    local_site.launch_old("--seed", "3", wait=False)
    [before] = local_site.trainers()
    local_site.run("adopt", "here", "--match", local_site.script, "--name", "train")
    written = local_site.home / "playbooks" / "train.yaml"
    loaded = playbook.load(written)
    assert list(loaded.model.workload.command[1:]) == before["argv"][1:]
    assert loaded.model.workload.log == "logs/train.log"
    written.write_text(written.read_text().replace("{alive: 10s}", "{alive: 200ms}"))
    plan = local_site.run("train", "here", "--plan", "--seed", "4")
    assert "~ --seed=4  (was --seed 3)" in plan.stdout
    local_site.run("train", "here", "--seed", "4")
    [now] = local_site.trainers()
    assert now["argv"][1:] == [*before["argv"][1:-2], "--seed=4"]
    assert now["pid"] != before["pid"]


def test_a_file_that_is_there_is_not_written_over(local_site: Site) -> None:
    done = local_site.run("adopt", "here", "--match", local_site.script, "--name", "restart", status=2)
    assert "the file is there already" in done.stderr


def test_nothing_that_matches_is_told(local_site: Site) -> None:
    done = local_site.run("adopt", "here", "--match", "no-such-program.py", status=1)
    assert "no process is found by it" in done.stderr
    assert not (local_site.home / "playbooks" / "no-such-program.yaml").exists()
