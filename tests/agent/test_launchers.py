"""Shells, launchers, groups and sessions: who gets a signal, who must not, and who would start it again. Real small programs that look
to the kernel like the real launchers; these themselves are tried by `python -m tests.launchers`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from deployctl.agent import ladder, launchers, procfs, respawn, tree
from deployctl.agent.faults import Fault, NotStopped

from .conftest import OURS, SLEEP, Job, alive, until
from .test_tree import INNER, OUTER

TELLS = "import os, time\nprint('READY', os.getpid(), flush=True)\ntime.sleep(600)\n"
# An agent like torchrun's: ranks in sessions of their own, with its variables; on a signal it passes it on and waits, after CLOCK it kills.
AGENT = """import os, signal, subprocess, sys, time
RANK = '''import signal, sys, time
def leave(number, frame):
    with open(sys.argv[1], 'a') as out: out.write('%d ' % number)
    time.sleep(SAVE)
    with open(sys.argv[1], 'a') as out: out.write('saved ')
    sys.exit(0)
signal.signal(2, leave)
print('up', flush=True)
while True: time.sleep(600)
'''.replace('SAVE', os.environ['SAVE'])
ranks = []
for rank in range(2):
    environment = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), TORCHELASTIC_RUN_ID='r')
    child = subprocess.Popen([sys.executable, '-c', RANK, sys.argv[0] + '.%d' % rank], env=environment, start_new_session=True,
                             stdout=subprocess.PIPE)
    child.stdout.readline()
    ranks.append(child)
told = []
def end(number, frame):
    if told: return
    told.append(number)
    for rank in ranks: os.killpg(rank.pid, number)
    until = time.monotonic() + float(os.environ.get('TORCH_ELASTIC_SHUTDOWN_TIMEOUT', 30))
    for rank in ranks:
        try: rank.wait(max(0, until - time.monotonic()))
        except subprocess.TimeoutExpired: rank.kill(); rank.wait()
    sys.exit(1)
for number in (2, 15): signal.signal(number, end)
print('READY', *[rank.pid for rank in ranks], flush=True)
while True:
    time.sleep(0.1)
    if not told and all(rank.poll() is not None for rank in ranks): sys.exit(0)
"""
WORKER_LEAVES = """import os, subprocess, sys, time
read, write = os.pipe()
if not os.fork():
    if os.fork(): os._exit(0)
    os.write(write, b'%d' % os.getpid())
    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'])
os.wait()
print('READY', os.read(read, 99).decode(), flush=True)
time.sleep(600)
"""
LISTENS = """import socket, time
taken = socket.socket()
taken.bind(('127.0.0.1', 0))
taken.listen()
print('READY', taken.getsockname()[1], flush=True)
time.sleep(600)
"""
HALF = """import os, signal, sys, time
out = open(sys.argv[0] + '.tmp', 'w')
def save(number, frame):
    for _ in range(20):
        out.write('x' * 9999); out.flush(); time.sleep(0.1)
    os.rename(sys.argv[0] + '.tmp', sys.argv[0] + '.whole')
    os._exit(0)
signal.signal(2, save)
print('READY', flush=True)
while True: time.sleep(600)
"""


def climb(job: Job, *rungs: Any, **more: Any) -> Job:
    steps = [dict({"signal": rung[0], "wait": float(rung[1])}, **(rung[2] if len(rung) > 2 else {})) for rung in rungs]
    ladder.stop(job, {"ladder": steps, "who": "before", **more})
    return job


def line_of(pid: int) -> launchers.Line:
    seen = procfs.look(pid)
    assert seen is not None
    return launchers.line(seen, tree.tree([pid]))


def agent(start: Any, save: str, clock: str = "30") -> Any:
    return start(AGENT, env=dict(os.environ, SAVE=save, TORCH_ELASTIC_SHUTDOWN_TIMEOUT=clock))


def written(started: Any) -> list[str]:
    return [Path(f"{started.script}.{rank}").read_text() for rank in range(2)]


def test_a_process_that_gives_ranks_is_the_agent_and_they_are_its_ranks(start: Any) -> None:
    started = agent(start, "0", "7.5")
    line = line_of(started.pid)
    assert launchers.role(line.main, line.members) == "agent"
    assert [seen["pid"] for seen in launchers.ranks(line)] == started.pids
    assert launchers.clock(line) == 7.5


def test_ranks_that_match_are_the_workload_of_their_agent(start: Any) -> None:
    started = agent(start, "0")
    found = tree.find({"name": "train", "match": {"regex": f"{started.name}.[01]$"}}, None)
    assert found.top is not None and found.top["pid"] == started.pid
    assert set(started.pids) < {seen["pid"] for seen in found.members}


def test_one_interrupt_goes_to_the_agent_and_every_rank_saves_once(start: Any) -> None:
    started = agent(start, "1")
    job = climb(Job(started), ("INT", 20))
    assert job.said("rung")[0]["pids"] == [started.pid]
    assert written(started) == ["2 saved ", "2 saved "]


def test_to_ranks_no_clock_of_the_launcher_cuts_the_save(start: Any) -> None:
    started = agent(start, "2", clock="0.5")
    job = climb(Job(started), ("INT", 20, {"to": "ranks"}))
    assert job.said("rung")[0]["pids"] == started.pids
    assert written(started) == ["2 saved ", "2 saved "]


def test_a_held_agent_is_ended_when_its_ranks_are_gone(start: Any) -> None:
    started = agent(start, "1", clock="0.2")
    job = climb(Job(started), ("INT", 20), to="hold-agent")
    assert written(started) == ["2 saved ", "2 saved "]
    assert job.said("stopped") and not alive(started.pid)


def test_an_agent_that_was_held_in_vain_goes_on(start: Any) -> None:
    started = agent(start, "600")
    with pytest.raises(NotStopped):
        climb(Job(started), ("INT", 0.5), to="hold-agent")
    until(lambda: procfs.look(started.pid)["state"] == "S", "the agent goes on")


def test_a_launcher_that_is_a_shell_and_an_agent_gets_it_at_the_agent(start: Any, tmp_path: Any) -> None:
    (tmp_path / INNER).write_text(AGENT.replace("print('READY'", "print('READY', os.getpid()"))
    started = start(f"{sys.executable} {tmp_path}/{INNER}\nexit 0\n", before=["bash"], name=OUTER, env=dict(os.environ, SAVE="0"))
    assert line_of(started.pid).main["pid"] == started.pids[0]


@pytest.mark.parametrize("shell", [True, False], ids=["a neighbour", "a tee"])
def test_a_group_with_others_in_it_is_spared(start: Any, tmp_path: Any, shell: bool) -> None:
    (tmp_path / INNER).write_text(TELLS)
    python = f"{sys.executable} {tmp_path}/{INNER}"
    started = start(f"sleep 600 & {python}\n" if shell else f"{python} | tee log\n", before=["bash"], name=OUTER, cwd=tmp_path)
    job = Job()
    job.workload["match"] = INNER if shell else OUTER
    with pytest.raises(NotStopped):
        climb(job, ("INT", 5, {"to": "group"}))
    assert job.said("rung-skipped")[0]["verdict"] is None
    assert alive(started.pids[0])
    for child in tree.tree([started.pid]):
        if child["comm"] == "sleep":
            os.kill(child["pid"], signal.SIGKILL)


def test_the_other_run_of_a_shell_and_the_shell_outlive_every_ladder(start: Any, tmp_path: Any) -> None:
    other = f"other_{OURS}.py"
    for name in (INNER, other):
        (tmp_path / name).write_text(TELLS)
    text = f"cd {tmp_path}; {sys.executable} {other} >pid & {sys.executable} {INNER} & sleep 600\n"
    started = start(text, before=["bash"], name=OUTER)
    neighbour = int(until(lambda: (tmp_path / "pid").read_text().split()[1:] if (tmp_path / "pid").exists() else None, "the neighbour")[0])
    job = Job()
    job.workload["match"] = INNER
    climb(job, ("INT", 0.2), ("TERM", 0.2), ("KILL", 10))
    assert not alive(started.pids[0])
    assert alive(neighbour) and alive(started.pid)
    started.pids = [neighbour, *(seen["pid"] for seen in tree.tree([started.pid])[1:])]


def test_a_worker_that_left_the_line_but_not_the_session_is_ended_too(start: Any) -> None:
    started = start(WORKER_LEAVES, start_new_session=True)
    climb(Job(started), ("INT", 1), ("KILL", 10))
    assert not alive(started.pids[0])


def test_a_session_whose_leader_is_not_of_the_tree_is_left_alone(start: Any) -> None:
    started = start(WORKER_LEAVES)
    climb(Job(started), ("INT", 10))
    assert alive(started.pids[0])


@pytest.mark.parametrize("match", [["{python}", "{name}"], {"regex": "{name}$"}, {"text": "{name}", "directory": "{home}"}, {"user": "0"}])
def test_a_process_is_known_by_words_by_a_pattern_and_by_where_it_is(start: Any, tmp_path: Any, match: Any) -> None:
    name = f"known_{OURS}.py"
    started = start(SLEEP, name=name, cwd=tmp_path)
    fill = {"{python}": sys.executable, "{name}": name, "{home}": str(tmp_path)}

    def filled(text: str) -> str:
        for mark, value in fill.items():
            text = text.replace(mark, value)
        return text

    words = [filled(word) for word in match] if isinstance(match, list) else {key: filled(value) for key, value in match.items()}
    if words == [sys.executable, name]:
        words[1] = started.script
    if isinstance(words, dict) and "user" in words:
        words = {"text": name, "user": str(os.getuid())}
    found = tree.find({"name": "train", "match": words}, None)
    assert found.top is not None and found.top["pid"] == started.pid


@pytest.mark.parametrize("more", [{"directory": "/usr"}, {"user": "65533"}])
def test_a_process_somewhere_else_or_of_somebody_else_is_another(start: Any, more: Any) -> None:
    started = start(SLEEP)
    assert tree.find({"name": "train", "match": dict(text=started.name, **more)}, None).top is None


@pytest.mark.parametrize("program", ["vim", "tail -f", "grep"])
def test_who_only_names_the_script_is_not_the_workload(start: Any, program: str) -> None:
    name = f"named_{OURS}.py"
    word = program.split()[0]
    argv = ["bash", "-c", f"exec -a {word} sleep 600 {' '.join(program.split()[1:])} {name}".replace("-f", "")]
    child = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        assert tree.find({"name": "train", "match": name}, None).top is None
    finally:
        child.kill()
        child.wait()


def test_a_half_written_file_holds_back_what_would_cut_it(start: Any) -> None:
    started = start(HALF)
    job = climb(Job(started), ("INT", 0.3), ("TERM", 5), ("KILL", 5), extend=0)
    assert [event["what"] for event in job.events if event["what"] != "waiting"] == ["rung", "signalled", "protected", "stopped"]
    assert os.path.getsize(f"{started.script}.whole") == 20 * 9999


def test_a_half_written_file_is_protected_for_a_bounded_time(start: Any) -> None:
    started = start(HALF)
    job = climb(Job(started), ("INT", 0.3), ("KILL", 5), extend=0, protect_for=0.5)
    assert job.said("unprotected") and job.said("stopped")[0]["by"] == "KILL"


def test_a_signal_that_ends_it_outright_is_announced(start: Any) -> None:
    started = start(SLEEP)
    assert climb(Job(started), ("TERM", 10)).said("rung")[0]["outright"] == [started.pid]


def test_a_strict_ladder_ends_at_a_rung_that_cannot_work(start: Any) -> None:
    started = start(f"import signal\nsignal.signal(2, signal.SIG_IGN)\n{SLEEP}")
    job = Job(started)
    with pytest.raises(NotStopped):
        climb(job, ("INT", 5), ("KILL", 5), strict=True)
    assert [event["what"] for event in job.events] == ["rung-skipped", "not-stopped"] and alive(started.pid)


def test_cont_lets_a_suspended_process_hear_its_signal(start: Any) -> None:
    started = start(f"import os, signal, sys\nsignal.signal(2, lambda *_: os._exit(3))\n{SLEEP}")
    os.kill(started.pid, signal.SIGSTOP)
    until(lambda: procfs.look(started.pid)["state"] == "T")
    assert climb(Job(started), ("INT", 10), cont=True).said("stopped")[0]["exit"] == {"status": 3}


def test_a_rung_that_another_verdict_asks_for_is_left_out(start: Any) -> None:
    started = start(SLEEP)
    job = climb(Job(started), ("INT", 5, {"only_if": ["zombie"]}), ("TERM", 10, {"unless": ["zombie"]}))
    assert (job.events[0]["what"], job.said("rung")[0]["signal"]) == ("rung-skipped", "TERM")


def test_what_a_loop_starts_again_is_a_verdict_and_no_success(start: Any, tmp_path: Any) -> None:
    (tmp_path / INNER).write_text(TELLS)
    text = f"while true; do {sys.executable} {tmp_path}/{INNER}; sleep 0.1; done\n"
    started = start(text, before=["bash"], name=OUTER, start_new_session=True)
    job = Job()
    job.workload["match"] = INNER
    try:
        top = tree.find(job.workload, None).top
        assert top is not None and respawn.supervisor(top)["kind"] == "loop"
        with pytest.raises(NotStopped):
            climb(job, ("TERM", 10))
        told = job.said("not-stopped")[0]
        assert told["verdict"] == "respawned" and told["pid"] != started.pids[0] and alive(told["pid"])
    finally:
        os.killpg(started.pid, signal.SIGKILL)


def test_a_wrapper_that_ends_with_its_program_starts_nothing_again(start: Any, tmp_path: Any) -> None:
    (tmp_path / INNER).write_text(TELLS)
    start(f"{sys.executable} {tmp_path}/{INNER}\nexit 0\n", before=["bash"], name=OUTER, start_new_session=True)
    job = Job()
    job.workload["match"] = INNER
    top = tree.find(job.workload, None).top
    assert top is not None and respawn.supervisor(top) is None
    begun = time.monotonic()
    climb(job, ("TERM", 10))
    assert time.monotonic() - begun < 5 and job.said("stopped")


def test_a_port_that_stays_taken_is_a_fault(start: Any) -> None:
    holder, started = start(LISTENS), start(SLEEP)
    [port], holder.pids = holder.pids, []
    job = Job(started)
    with pytest.raises(Fault, match=f"port {port} is still listened on"):
        climb(job, ("TERM", 10), free={"ports": [port], "within": 0.2})
    assert job.said("stopped")


def test_a_lock_file_that_names_a_dead_process_is_a_fault(start: Any, tmp_path: Any) -> None:
    started = start(SLEEP)
    (tmp_path / "train.lock").write_text(f"{started.pid}\n")
    with pytest.raises(Fault, match=r"stale|lives"):
        climb(Job(started), ("TERM", 10), free={"files": [str(tmp_path / "train.lock")], "within": 0.1})
