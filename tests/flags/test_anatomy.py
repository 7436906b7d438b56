"""Where the program's own arguments begin, behind every wrapper that is known."""

from __future__ import annotations

import shlex

import pytest

from deployctl.flags.anatomy import anatomy, program_position


@pytest.mark.parametrize(
    ("command", "position"),
    [
        ("train", 1),
        ("/opt/train --x", 1),
        ("python3 train.py --x", 2),
        ("/venv/bin/python3.12 train.py", 2),
        ("python3.13t train.py", 2),
        ("python3 -u train.py", 3),
        ("python3 -X dev -W ignore train.py", 6),
        ("python3 -Xdev -Wignore train.py", 4),
        ("python3 -uX dev train.py", 4),
        ("python3 -m pkg.mod --x", 3),
        ("python3 -mpkg.mod --x", 2),
        ("python3 -Ium pkg.mod --x", 3),
        ("python3 -c code arg", 3),
        ("python3 -ccode arg", 2),
        ("python3 -- train.py", 3),
        ("python3 - arg", 2),
        ("python3 --check-hash-based-pycs always train.py", 4),
        ("python3", 1),
        ("python3 -m", 2),
        ("python3 -X", 2),
        ("pythonic train.py", 1),
        ("", 0),
    ],
)
def test_the_flags_of_the_program_begin_behind_its_script(command, position):
    assert program_position(tuple(command.split())) == position


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("torchrun train.py", ""),
        ("torchrun --nproc-per-node 8 --standalone train.py --lr 1", "--lr 1"),
        ("torchrun --nproc_per_node=8 -t 3 -m pkg.mod --lr 1", "--lr 1"),
        ("torchrun --no-python bash run.sh --x", "--x"),
        ("torchrun --nnodes 1 -- train.py --lr 1", "--lr 1"),
        ("torchrun train.py -- --lr 1", "--lr 1"),
        ("torchrun --an-option-of-next-year train.py --lr 1", "--lr 1"),
        ("python train.py -- --lr 1", "-- --lr 1"),
        ("python3 -m torch.distributed.run --nnodes 1 train.py --lr 1", "--lr 1"),
        ("/v/bin/python /v/bin/torchrun --nnodes 1 train.py --lr 1", "--lr 1"),
        ("accelerate launch --multi_gpu --num_processes 2 train.py --lr 1", "--lr 1"),
        ("accelerate launch --module --mixed-precision bf16 pkg.mod --lr 1", "--lr 1"),
        ("python -m accelerate.commands.launch --num_processes 2 train.py --lr 1", "--lr 1"),
        ("deepspeed --num_gpus 8 --no_local_rank train.py --lr 1", "--lr 1"),
        ("uv run train.py --lr 1", "--lr 1"),
        ("uv run --with torch -- python -u train.py --lr 1", "--lr 1"),
        ("uv run -m pkg.mod --lr 1", "--lr 1"),
        ("uv --directory /x run torchrun --nproc-per-node 8 train.py --lr 1", "--lr 1"),
        ("conda run -n env --no-capture-output python t.py --lr 1", "--lr 1"),
        ("env A=1 B=2 nice -n 5 nohup python3 -u train.py --x", "--x"),
        ("env -u A -- A=1 python3 train.py --x", "--x"),
        ("timeout -k 5 60 python t.py --x", "--x"),
        ("sudo -u anna -E A=1 python t.py --x", "--x"),
        ("taskset -c 0-3 numactl --cpunodebind 0 python -m p.q --x", "--x"),
        ("setsid -w ionice -c2 -n 7 stdbuf -oL ./train --x", "--x"),
        ("bash run.sh --x", "--x"),
        ("accelerate config", "config"),
    ],
)
def test_a_wrapper_keeps_its_own_words(command, arguments):
    words = shlex.split(command)
    assert words[anatomy(words).start :] == arguments.split()


def test_a_wrapper_is_known_with_its_options():
    words = ["nice", "-n", "5", "uv", "run", "--with", "x", "torchrun", "--nproc-per-node", "8", "train.py", "--lr", "1"]
    found = [(wrapper.name, words[wrapper.start : wrapper.end], wrapper.forwards) for wrapper in anatomy(words).wrappers]
    assert found == [("nice", ["-n", "5"], False), ("uv", ["--with", "x"], True), ("torchrun", ["--nproc-per-node", "8"], True)]


def test_the_playbook_can_say_where_the_program_is():
    words = ["srun", "-N", "2", "./wrap.sh", "train.py", "--lr", "1"]
    assert words[anatomy(words, "train.py").start :] == ["--lr", "1"]
    assert anatomy(words, "other.py") == anatomy(words)


def test_a_text_for_a_shell_is_known():
    assert anatomy(["bash", "-c", "train --x"]).shell
    assert not anatomy(["python3", "-c", "code"]).shell
