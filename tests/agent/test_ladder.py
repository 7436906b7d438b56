from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from deployctl.agent import ladder, procfs, sending
from deployctl.agent.faults import NotStopped, Refused

from .conftest import BLOCKS, IGNORES, LEAVES_WORKERS, SLEEP, SWALLOWS, Job, alive, as_nobody, until
from .test_tree import DETACHES, INNER, MARK, OUTER, marked

# Notes the moment of each signal in a file beside the script, and ends on TERM only.
NOTES = """import os, signal, sys, time
def note(number, frame):
    with open(sys.argv[0] + '.notes', 'a') as out: out.write('%d %f\\n' % (number, time.time()))
    if number == 15: os._exit(0)
signal.signal(2, note), signal.signal(15, note)
print('READY', flush=True)
while True: time.sleep(600)
"""
# Its last word is the moment at which it ends.
LAST_WORD = """import os, sys, time
try:
    print('READY', flush=True)
    time.sleep(600)
except KeyboardInterrupt: pass
with open(sys.argv[0] + '.end', 'w') as out: out.write(str(time.time()))
os._exit(7)
"""
WRITES = """import os, signal
signal.signal(signal.SIGINT, lambda *_: None)
print('READY', flush=True)
null = os.open('/dev/null', os.O_WRONLY)
while True: os.write(null, b'x' * 9999)
"""
TELLS = "import os, time\nprint('READY', os.getpid(), flush=True)\ntime.sleep(600)\n"
FOREIGN = """
class Job:
    workload, before, record, launched, mark, rung_sent, samples = WORKLOAD, None, None, None, None, -1, []
    def emit(self, what, **fields): print(what, fields.get("verdict"))
    def heed(self): pass
try: ladder.stop(Job(), {"who": "before", "ladder": [{"signal": "INT", "wait": 60.0}]})
except faults.NotStopped: pass
"""


def climb(job: Job, *rungs: Any, who: str = "before") -> Job:
    ladder.stop(job, {"ladder": [{"signal": name, "wait": float(wait)} for name, wait in rungs], "who": who})
    return job


def words(job: Job) -> list[str]:
    return [event["what"] for event in job.events]


def test_a_handled_signal_ends_it_and_the_end_is_told_at_once(start: Any) -> None:
    started = start(LAST_WORD)
    job = climb(Job(started), ("INT", 20), ("KILL", 5))
    assert words(job) == ["rung", "signalled", "stopped"]
    stopped = job.said("stopped")[0]
    assert (stopped["by"], stopped["verdict"], stopped["exit"]) == ("INT", "stopped", {"status": 7})
    with open(started.script + ".end") as end:
        assert 0 <= stopped["t"] - float(end.read()) < 0.25
    assert job.stopped_at is not None


def test_nothing_to_stop_is_said_and_no_end_is_claimed() -> None:
    job = climb(Job(), ("INT", 1))
    assert (words(job), job.stopped_at) == (["not-running"], None)


def test_an_ignored_signal_is_skipped_at_once(start: Any) -> None:
    job = climb(Job(start(IGNORES.format(names="[2, 3]"))), ("INT", 60), ("TERM", 10))
    assert words(job) == ["rung-skipped", "rung", "signalled", "stopped"]
    assert (job.events[0]["verdict"], job.events[0]["detail"]) == ("signal-ignored", "inherited")
    assert (job.events[3]["verdict"], job.events[3]["detail"], job.events[3]["exit"]) == ("stopped", "default-action", {"signal": 15})


def test_what_a_shell_starts_with_an_ampersand_ignores_int(start: Any, tmp_path: Any) -> None:
    (tmp_path / INNER).write_text(TELLS)
    started = start(f"{sys.executable} {tmp_path}/{INNER} &\n", before=["sh"], name=OUTER)
    job = Job()
    job.workload["match"] = INNER
    assert words(climb(job, ("INT", 60), ("TERM", 10))) == ["rung-skipped", "rung", "signalled", "stopped"]
    assert not alive(started.pids[0])


def test_a_blocked_signal_is_skipped_at_once(start: Any) -> None:
    job = climb(Job(start(BLOCKS)), ("INT", 60), ("TERM", 10))
    assert (words(job), job.events[0]["verdict"]) == (["rung-skipped", "rung", "signalled", "stopped"], "signal-blocked")


def test_only_kill_is_tried_on_a_suspended_process(start: Any) -> None:
    started = start(SLEEP)
    os.kill(started.pid, signal.SIGSTOP)
    until(lambda: procfs.look(started.pid)["state"] == "T")
    job = climb(Job(started), ("INT", 60), ("TERM", 60), ("KILL", 10))
    assert [event.get("verdict") for event in job.events] == ["suspended", "suspended", None, None, "stopped-dirty"]
    assert job.events[4]["detail"] == "killed"


@pytest.mark.parametrize("line", ["{}", "{} | tee log"])
def test_behind_a_shell_that_waits_the_program_gets_the_signal(start: Any, tmp_path: Any, line: str) -> None:
    (tmp_path / INNER).write_text(TELLS)
    command = line.format(f"{sys.executable} {tmp_path}/{INNER}")
    started = start(f"cd {tmp_path}\n{command}\nexit 3\n", before=["bash"], name=OUTER)
    job = climb(Job(started), ("INT", 20))
    assert job.said("rung")[0]["pids"] == started.pids
    assert job.said("stopped")[0]["exit"] == {"status": 3}


def test_kill_goes_to_the_whole_tree_the_top_first(start: Any) -> None:
    started = start(LEAVES_WORKERS)
    job = climb(Job(started), ("KILL", 10))
    assert job.said("rung")[0]["pids"][0] == started.pid
    assert sorted(job.said("rung")[0]["pids"]) == sorted([started.pid, *started.pids])
    assert not any(alive(pid) for pid in [started.pid, *started.pids])


def test_children_that_outlive_the_main_process_get_the_next_rung(start: Any) -> None:
    started = start(LEAVES_WORKERS)
    job = climb(Job(started), ("INT", 0.5), ("TERM", 10))
    assert [event["pids"] for event in job.said("rung")] == [[started.pid], started.pids]
    assert words(job)[-1] == "stopped"
    assert not any(alive(pid) for pid in started.pids)


def test_children_that_survive_the_ladder_are_a_failure(start: Any) -> None:
    started = start(LEAVES_WORKERS)
    job = Job(started)
    with pytest.raises(NotStopped) as raised:
        climb(job, ("INT", 0.5))
    told = job.said("not-stopped")[0]
    assert (told["verdict"], told["detail"], told["pids"], told["taken"]) == ("children-survive", "same-session", started.pids, ["INT"])
    assert raised.value.facts["pids"] == started.pids
    assert job.stopped_at is None
    assert all(alive(pid) for pid in started.pids)


def test_a_swallowed_signal_ends_in_a_verdict_with_evidence(start: Any) -> None:
    job = Job(start(SWALLOWS))
    with pytest.raises(NotStopped):
        climb(job, ("INT", 0.3))
    told = job.said("not-stopped")[0]
    assert (told["verdict"], told["taken"]) == ("signal-swallowed", ["INT"])
    assert told["evidence"]


def test_a_ladder_of_signals_that_cannot_work_ends_with_their_verdict(start: Any) -> None:
    job = Job(start(IGNORES.format(names="[2, 3]")))
    with pytest.raises(NotStopped):
        climb(job, ("INT", 60))
    told = job.said("not-stopped")[0]
    assert (told["verdict"], told["next"], told["taken"]) == ("signal-ignored", "signal:TERM", [])


def test_a_process_that_only_has_the_recorded_pid_lives_on(start: Any) -> None:
    decoy = start(SLEEP)
    job = Job()
    job.record = dict(procfs.look(decoy.pid), started=procfs.look(decoy.pid)["started"] - 1)
    assert words(climb(job, ("KILL", 5))) == ["not-running"]
    job.launched = job.record
    assert words(climb(job, ("KILL", 5), who="launched"))[-1] == "not-running"
    assert not sending.send(job.record, "KILL")
    assert alive(decoy.pid)


def test_two_processes_that_could_be_meant_are_both_left_alone(start: Any) -> None:
    first = start(SLEEP)
    second = start(SLEEP, name=first.name)
    with pytest.raises(Refused):
        climb(Job(first), ("KILL", 5))
    assert alive(first.pid) and alive(second.pid)


def test_a_marked_worker_that_left_the_line_is_ended_too(start: Any) -> None:
    started = start(DETACHES, env=marked())
    job = climb(Job(started, MARK), ("INT", 0.5), ("KILL", 10))
    assert [event["pids"] for event in job.said("rung")] == [[started.pid], started.pids]
    assert not alive(started.pids[0])


def test_what_was_launched_is_stopped_by_its_identity(start: Any) -> None:
    launched, stranger = start(SLEEP), start(SLEEP)
    job = Job()
    job.launched = procfs.look(launched.pid)
    assert words(climb(job, ("INT", 10), who="launched")) == ["rung", "signalled", "stopped"]
    assert alive(stranger.pid)


@pytest.mark.parametrize("who", ["launched", "before"])
def test_what_a_process_that_is_gone_has_left_behind_is_ended(start: Any, who: str) -> None:
    started = start(DETACHES, env=marked())
    job = Job(started, MARK)
    job.launched = job.before
    os.kill(started.pid, signal.SIGKILL)
    until(lambda: not alive(started.pid))
    climb(job, ("KILL", 10), who=who)
    assert [event["pids"] for event in job.said("rung")] == [started.pids]
    assert words(job)[-1] == "stopped"
    assert not alive(started.pids[0])


def test_of_several_lines_that_survived_all_are_ended(start: Any) -> None:
    """Nothing is known of the process that they are left of."""
    first, second = start(SLEEP, env=marked()), start(SLEEP, env=marked())
    job = Job(None, MARK)
    climb(job, ("KILL", 10))
    assert sorted(job.said("rung")[0]["pids"]) == sorted([first.pid, second.pid])
    assert words(job)[-1] == "stopped"


def test_a_linger_that_begins_in_a_new_life_waits_for_what_took_the_signal(start: Any) -> None:
    started = start(SLEEP)
    job = Job(started)
    job.climb, job.rung_sent = None, 0
    threading.Timer(0.5, started.process.kill).start()
    ladder.linger(job, {"who": "before", "ladder": [{"signal": "INT", "wait": 60.0}]}, 20.0)
    assert (job.said("stopped")[0]["by"], job.stopped_at is not None) == ("INT", True)
    job.climb = None
    ladder.linger(job, {"who": "before", "ladder": [{"signal": "INT", "wait": 60.0}]}, 20.0)
    assert words(job)[-1] == "not-running"


def test_a_linger_at_its_bound_says_so(start: Any) -> None:
    started = start(SLEEP)
    job = Job(started)
    job.climb, job.rung_sent = None, 0
    with pytest.raises(NotStopped, match=r"a linger of 0\.3 s") as raised:
        ladder.linger(job, {"who": "before", "ladder": [{"signal": "INT", "wait": 60.0}]}, 0.3)
    assert (raised.value.facts["pids"], raised.value.facts["taken"]) == ([started.pid], ["INT"])


def test_a_signal_that_another_user_may_not_send_is_said_at_once(start: Any) -> None:
    started = start(SLEEP)
    said = as_nobody(FOREIGN.replace("WORKLOAD", repr(started.workload)))
    assert said.splitlines() == ["rung-skipped no-permission", "not-stopped no-permission"]
    assert alive(started.pid)


def test_a_wait_tells_what_the_process_does_and_costs_next_to_nothing(start: Any) -> None:
    started = start(WRITES)
    spent = time.process_time()
    with pytest.raises(NotStopped):
        climb(job := Job(started), ("INT", 2.5))
    assert time.process_time() - spent < 0.2
    told = job.said("waiting")
    assert len(told) == 1
    assert (told[0]["wait"], told[0]["alive"]) == (2.5, [started.pid])
    assert told[0]["cpu"] > 0.05
    assert told[0]["written"] > 9999
    assert 2.0 <= told[0]["elapsed"] < 2.5


def test_time_in_which_the_job_itself_was_frozen_does_not_count(start: Any, tmp_path: Any) -> None:
    started = start(NOTES)
    code = f"""import sys
sys.path[:0] = {sys.path!r}
from tests.agent.conftest import Job
from deployctl.agent import ladder
job = Job()
job.workload = {started.workload!r}
ladder.stop(job, {{"who": "before", "ladder": [{{"signal": "INT", "wait": 1.2}}, {{"signal": "TERM", "wait": 9.0}}]}})
"""
    climber = subprocess.Popen([sys.executable, "-c", code])
    notes = started.script + ".notes"
    until(lambda: os.path.exists(notes))
    climber.send_signal(signal.SIGSTOP)
    freeze = threading.Timer(2.0, climber.send_signal, [signal.SIGCONT])
    freeze.start()
    assert climber.wait(timeout=20) == 0
    with open(notes) as lines:
        times = [float(line.split()[1]) for line in lines]
    assert times[1] - times[0] > 2.5
