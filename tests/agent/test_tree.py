from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from deployctl.agent import procfs, tree
from deployctl.agent.faults import Refused

from .conftest import OURS, SLEEP, alive, until

PLACE = f"/state/{OURS}/workloads/train"
MARK = f"DEPLOYCTL_MARK={PLACE}".encode()
INNER, OUTER = f"inner_{OURS}.py", f"run_{OURS}.sh"
FORKS = """import os, time
pids = []
for _ in range(4):
    pid = os.fork()
    if not pid:
        time.sleep(600)
    pids.append(pid)
print('READY', *pids, flush=True)
time.sleep(600)
"""
# A worker that leaves its parent's line: forked twice, a session of its own, another command line.
DETACHES = """import os, subprocess, sys
read, write = os.pipe()
if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    os.write(write, b'%d' % os.getpid())
    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'])
os.wait()
print('READY', os.read(read, 99).decode(), flush=True)
import time; time.sleep(600)
"""
NESTED = """import os, time
read, write = os.pipe()
child = os.fork()
if not child:
    grandchild = os.fork()
    if grandchild: os.write(write, b'%d' % grandchild)
    time.sleep(600)
print('READY', child, os.read(read, 99).decode(), flush=True)
time.sleep(600)
"""


def marked() -> Any:
    return dict(os.environ, DEPLOYCTL_MARK=PLACE)


def test_nothing_is_found_when_nothing_runs() -> None:
    assert tree.find({"name": "train", "match": "no-such-program"}, None) == (None, None, [])


def test_forked_workers_with_the_argv_of_their_parent_are_one_workload(start: Any) -> None:
    started = start(FORKS)
    found = tree.find(started.workload, None)
    assert (found.top["pid"], found.how) == (started.pid, "match")
    assert sorted(seen["pid"] for seen in found.members) == sorted([started.pid, *started.pids])


def test_two_lines_that_do_not_meet_are_refused_by_name(start: Any) -> None:
    first = start(SLEEP)
    second = start(SLEEP, name=first.name)
    with pytest.raises(Refused) as refused:
        tree.find(first.workload, None)
    assert sorted(item["pid"] for item in refused.value.facts["processes"]) == sorted([first.pid, second.pid])
    assert refused.value.todo


def test_a_recorded_process_and_a_matching_stranger_are_refused(start: Any) -> None:
    recorded, stranger = start(SLEEP), start(SLEEP)
    with pytest.raises(Refused):
        tree.find(stranger.workload, procfs.look(recorded.pid))


def test_a_recorded_process_is_found_whatever_its_command_line(start: Any) -> None:
    started = start(SLEEP)
    found = tree.find({"name": "train", "match": "other.py"}, procfs.look(started.pid))
    assert (found.top["pid"], found.how) == (started.pid, "record")


@pytest.mark.parametrize("wrong", [{"started": 1}, {"boot": "another"}, {"started": None}])
def test_a_record_of_another_process_with_that_pid_finds_nothing(start: Any, wrong: Any) -> None:
    started = start(SLEEP)
    assert tree.find({"name": "train", "match": "other.py"}, dict(procfs.look(started.pid), **wrong)).top is None


def test_a_recorded_wrapper_and_its_matching_program_are_one(start: Any, tmp_path: Any) -> None:
    (tmp_path / INNER).write_text("import os\n" + SLEEP.replace("'READY'", "'READY', os.getpid()"))
    started = start(f"{sys.executable} {tmp_path}/{INNER}\necho end\n", before=["sh"], name=OUTER)
    assert tree.find({"match": INNER}, procfs.look(started.pid)).top["pid"] == started.pid
    found = tree.find({"match": OUTER}, None)
    assert (found.top["pid"], len(tree.tree([started.pid]))) == (started.pid, 2)


def test_a_zombie_does_not_count(start: Any) -> None:
    started = start(SLEEP)
    seen = procfs.look(started.pid)
    started.process.send_signal(9)
    until(lambda: procfs.look(started.pid)["state"] == "Z")
    assert tree.find(started.workload, seen).top is None
    assert tree.tree([started.pid]) == []


def test_our_own_line_does_not_match(tmp_path: Any) -> None:
    script = tmp_path / "looker.py"
    path = os.path.dirname(os.path.dirname(os.path.dirname(tree.__file__)))
    look = "from deployctl.agent import tree\nprint(tree.find({'match': 'looker.py'}, None))\n"
    script.write_text(f"import sys\nsys.path.insert(0, {path!r})\n{look}")
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, timeout=20, check=True)
    assert done.stdout == "Found(top=None, how=None, members=[])\n"


def test_a_tree_begins_with_its_top_and_holds_grandchildren(start: Any) -> None:
    started = start(NESTED)
    assert [seen["pid"] for seen in tree.tree([started.pid])] == [started.pid, *started.pids]


def test_a_worker_that_left_the_line_belongs_to_it_by_its_mark_only(start: Any) -> None:
    started = start(DETACHES, env=marked())
    assert [seen["pid"] for seen in tree.tree([started.pid])] == [started.pid]
    assert [seen["pid"] for seen in tree.tree([started.pid], MARK)] == [started.pid, *started.pids]
    assert [seen["pid"] for seen in tree.tree([], MARK)] == [started.pid, *started.pids]
    assert alive(started.pids[0])


def test_a_mark_that_only_begins_like_ours_is_not_ours(start: Any) -> None:
    start(SLEEP, env=dict(os.environ, DEPLOYCTL_MARK=PLACE + "2"))
    assert tree.tree([], MARK) == []


def test_what_is_left_of_a_marked_workload_is_one_workload(start: Any) -> None:
    first = start(SLEEP, env=marked())
    second = start(SLEEP, name=first.name, env=marked())
    found = tree.find(first.workload, None, MARK)
    assert (found.how, sorted(seen["pid"] for seen in found.members)) == ("mark", sorted([first.pid, second.pid]))
