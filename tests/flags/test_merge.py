"""How new values meet an old command line, case by case."""

from __future__ import annotations

import shlex

import pytest

from deployctl.errors import WordsError
from deployctl.flags import Flag, Shape, environment, merge

INTERVAL = Flag("profile-interval", type="int", min=0)
LR = Flag("lr", "float")
AMP = Flag("amp", "bool")
BF16 = Flag("bf16", "bool")
BATCH = Flag("batch", "int", spelling="-b")
NAME = Flag("name", spelling="-n")
TAGS = Flag("tags", nargs="+")
PAIR = Flag("pair", "int", nargs="2")
SET = Flag("set", repeat="replace")
ADD = Flag("add", repeat="append")
COMPILE = Flag("compile", "bool", off="--no-compile")


def merged(command: str, *pairs, extra: str = "", shape: Shape | None = None) -> str:
    """The line, merged three times, which must be what one time makes of it."""
    words, shape = tuple(shlex.split(command)), shape or Shape(tuple(flag for flag, _ in pairs))
    once = merge(words, pairs, tuple(shlex.split(extra)), shape)
    twice = merge(once, pairs, tuple(shlex.split(extra)), shape)
    assert merge(twice, pairs, tuple(shlex.split(extra)), shape) == twice == once
    return shlex.join(once)


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("python3 t.py --x 1", "python3 t.py --profile-interval=60 --x 1"),
        ("python3 t.py --a --profile-interval 5 --b", "python3 t.py --a --profile-interval=60 --b"),
        ("python3 t.py --a --profile-interval=5 --b", "python3 t.py --a --profile-interval=60 --b"),
        ("t --profile-interval=5 --a --profile-interval 7 x", "t --profile-interval=60 --a x"),
        ("t --profile-interval -5 x", "t --profile-interval=60 x"),
        ("t --profile-interval --x", "t --profile-interval=60 --x"),
        ("t --profile-interval", "t --profile-interval=60"),
        ("t --profile-interval-max 5", "t --profile-interval=60 --profile-interval-max 5"),
        ("t -- --profile-interval 5", "t --profile-interval=60 -- --profile-interval 5"),
        ("t --profile-interval 5 -- --profile-interval 5", "t --profile-interval=60 -- --profile-interval 5"),
        ("python3 -u -m pkg.mod cfg.yaml", "python3 -u -m pkg.mod --profile-interval=60 cfg.yaml"),
        ("t", "t --profile-interval=60"),
    ],
)
def test_a_flag_stands_once_in_its_old_place(command, after):
    assert merged(command, (INTERVAL, 60)) == after


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("t --profile_interval 5 x", "t --profile_interval=60 x"),  # the program took it so
        ("t --profile-i 5 x", "t --profile-interval=60 x"),
        ("t --profile-interval 5 --profile-inter=7 x", "t --profile-interval=60 x"),
        ("t --profile-i 5 --profile-iterations 3", "t --profile-interval=60 --profile-i 5 --profile-iterations 3"),  # not unique
        ("t --profile 5 --x", "t --profile 5 --profile-interval=60 --x"),  # perhaps an option of its own: it stays, and does not win
        ("t --x --profile cfg", "t --x --profile cfg --profile-interval=60"),
        ("t --profile-interval 5 --prof 7 --x", "t --prof 7 --profile-interval=60 --x"),
    ],
)
def test_another_spelling_of_a_flag_does_not_win_over_it(command, after):
    assert merged(command, (INTERVAL, 60)) == after


def test_an_option_that_begins_a_longer_name_is_left_alone():
    scheduler = Flag("lr-scheduler")
    assert merged("t --lr 1 --x", (scheduler, "cos"), shape=Shape((scheduler, LR))) == "t --lr-scheduler=cos --lr 1 --x"
    assert merged("t --lr 1 --x", (scheduler, "cos")) == "t --lr 1 --lr-scheduler=cos --x"
    layer = Flag("layer-12")
    assert merged("t --layer-1 a --x", (layer, "b")) == "t --layer-1 a --layer-12=b --x"


def test_a_declared_spelling_is_written_and_other_names_go():
    flag = Flag("batch", "int", spelling="--batch_size", also=("-b", "--bs"))
    assert merged("t --batch-size 4 -b 5 --bs=6 x", (flag, 8)) == "t --batch_size=8 x"


@pytest.mark.parametrize(
    ("command", "pair", "after"),
    [
        ("t -b 4 x", (BATCH, 8), "t -b 8 x"),
        ("t -b4 x", (BATCH, 8), "t -b 8 x"),
        ("t -b=4 x", (BATCH, 8), "t -b 8 x"),
        ("t -b4 -b 5 -v", (BATCH, -8), "t -b -8 -v"),
        ("t -batch x", (BATCH, 8), "t -batch x -b 8"),
        ("t -n a --x", (NAME, "-y"), "t -n-y --x"),
        ("t -n-a --x", (NAME, "b"), "t -n b --x"),
        ("t -nab --x", (NAME, "b"), "t -nab -n b --x"),
        ("t --lr -1e-4 x", (LR, LR.parse("-1e-5")), "t --lr=-1e-5 x"),
        ("t --lr -inf -x", (LR, 1.0), "t --lr=1.0 -x"),
        ("t --lr -.5", (LR, 1.0), "t --lr=1.0"),
    ],
)
def test_a_short_option_and_a_negative_number(command, pair, after):
    assert merged(command, pair) == after


@pytest.mark.parametrize(
    ("command", "pair", "after"),
    [
        ("t --amp cfg.yaml", (AMP, False), "t cfg.yaml"),
        ("t --amp cfg.yaml", (AMP, True), "t --amp cfg.yaml"),
        ("t cfg.yaml", (AMP, True), "t --amp cfg.yaml"),
        ("t --amp x --amp", (AMP, True), "t --amp x"),
        ("t --x --no-amp", (AMP, True), "t --x --amp"),
        ("t --x --no-amp", (AMP, False), "t --x --no-amp"),
        ("t --x --amp --no-amp", (AMP, False), "t --x"),
        ("t --compile x", (COMPILE, False), "t --no-compile x"),
        ("t --no-compile x --compile", (COMPILE, True), "t --compile x"),
        ("t --no-comp x", (COMPILE, True), "t --compile x"),
        ("t --no x", (COMPILE, True), "t --no x --compile"),
        ("t x", (COMPILE, False), "t --no-compile x"),
        ("t --bf16 True x", (BF16, False), "t --bf16=False x"),
        ("t --bf16 true x", (BF16, True), "t --bf16=true x"),
        ("t --bf16=False", (BF16, True), "t --bf16=True"),
        ("t --use_cache x", (Flag("use-cache", "bool"), True), "t --use_cache x"),
        ("t --no_use_cache x", (Flag("use-cache", "bool"), True), "t --use_cache x"),
    ],
)
def test_a_switch_goes_on_and_off(command, pair, after):
    assert merged(command, pair) == after


@pytest.mark.parametrize(
    ("command", "pair", "after"),
    [
        ("t --tags a b --lr 1", (TAGS, ("c",)), "t --tags c --lr 1"),
        ("t --lr 1 --tags a b", (TAGS, ("c", "d")), "t --lr 1 --tags c d"),
        ("t cfg.yaml --lr 1", (TAGS, ("c", "d")), "t cfg.yaml --tags c d --lr 1"),  # right behind t it would swallow cfg.yaml
        ("t --lr 1 cfg.yaml", (TAGS, ("c", "d")), "t --tags c d --lr 1 cfg.yaml"),
        ("t cfg.yaml", (TAGS, ("c", "d")), "t cfg.yaml --tags c d"),
        ("t --tags=a cfg.yaml --x", (TAGS, ("c", "d")), "t cfg.yaml --tags c d --x"),
        ("t cfg.yaml -- z", (TAGS, ("c",)), "t cfg.yaml --tags c -- z"),
        ("t --pair 1 2 cfg.yaml", (PAIR, (3, -4)), "t --pair 3 -4 cfg.yaml"),
        ("t cfg.yaml", (PAIR, (3, 4)), "t --pair 3 4 cfg.yaml"),
        ("t --set a=1 --x --set b=2", (SET, ("c=3", "d=4")), "t --set=c=3 --set=d=4 --x"),
        ("t --add a --x", (ADD, ("b",)), "t --add a --add=b --x"),
        ("t --add a --x", (ADD, ("a", "b")), "t --add a --add=b --x"),
        ("t --x", (ADD, ("b", "c")), "t --add=b --add=c --x"),
        ("t --add a --x --add b", (ADD, None), "t --x"),
    ],
)
def test_a_flag_of_several_values(command, pair, after):
    assert merged(command, pair) == after


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("torchrun --nproc-per-node 8 train.py --x", "torchrun --nproc-per-node 8 train.py --lr=1.0 --x"),
        ("torchrun train.py -- --x", "torchrun train.py -- --lr=1.0 --x"),  # torchrun takes that -- for itself
        ("accelerate launch --num_processes 2 train.py --lr 2", "accelerate launch --num_processes 2 train.py --lr=1.0"),
        ("uv run --with x python -m p.q y", "uv run --with x python -m p.q --lr=1.0 y"),
        ("env lr=2 nice -n 5 nohup ./train --lr 2 y", "env lr=2 nice -n 5 nohup ./train --lr=1.0 y"),
        ("torchrun --lr 3 train.py", "torchrun --lr 3 train.py --lr=1.0"),
    ],
)
def test_the_flags_of_the_program_go_to_the_program(command, after):
    assert merged(command, (LR, 1.0)) == after


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("torchrun --nproc-per-node 8 t.py --nproc 8", "torchrun --nproc=4 t.py --nproc 8"),
        ("torchrun --nproc 8 --x t.py", "torchrun --nproc=4 --x t.py"),
        ("torchrun t.py --x", "torchrun --nproc=4 t.py --x"),
        ("uv run --with x torchrun t.py", "uv run --with x torchrun --nproc=4 t.py"),
        ("uv run --nproc=8 torchrun t.py", "uv run --nproc=4 torchrun t.py"),
        ("python -u -m torch.distributed.run -- t.py", "python -u -m torch.distributed.run --nproc=4 -- t.py"),
    ],
)
def test_a_flag_of_the_wrapper_goes_to_the_wrapper(command, after):
    flag = Flag("nproc", "int", also=("--nproc-per-node",))
    assert merged(command, (flag, 4), shape=Shape((flag,), wrapper_flags=("nproc",))) == after.replace("--nproc-per-node 8", "--nproc=4")


def test_flags_of_wrapper_and_program_meet_one_line():
    nproc, nodes = Flag("nproc-per-node", "int"), Flag("nnodes", "int")
    shape = Shape((nproc, nodes, LR), wrapper_flags=("nproc-per-node", "nnodes"))
    pairs = [(nproc, 4), (LR, 1.0), (nodes, 2)]
    line = merged("uv run torchrun --nproc_per_node 8 t.py --lr 2", *pairs, shape=shape)
    assert line == "uv run torchrun --nnodes=2 --nproc_per_node=4 t.py --lr=1.0"


def test_a_wrapper_flag_without_a_wrapper_is_refused():
    with pytest.raises(WordsError, match="has no wrapper"):
        merge(("t",), [(LR, 1.0)], (), Shape((LR,), wrapper_flags=("lr",)))


def test_the_playbook_says_where_the_program_begins():
    assert merged("srun -N 2 t.py --x", (LR, 1.0), shape=Shape((LR,), program="t.py")) == "srun -N 2 t.py --lr=1.0 --x"


UNKNOWN = ["srun -N 2 python3 t.py", "py-spy record -- /v/bin/python t.py", "./wrap.sh torchrun t.py", "nice a python b"]


@pytest.mark.parametrize("command", UNKNOWN)
def test_a_wrapper_that_nobody_knows_gets_no_flag_of_the_program(command):
    with pytest.raises(WordsError, match="the flags could be those of '") as caught:
        merge(tuple(command.split()), [(LR, 1.0)])
    assert "program: WORD" in caught.value.todo
    assert merge(tuple(command.split()), []) == tuple(command.split())
    assert "--lr=1.0" in merge(tuple(command.split()), [(LR, 1.0)], (), Shape((LR,), program=command.split()[-1]))


def test_an_interpreter_at_the_very_end_starts_nothing():
    assert merged("t --with python", (LR, 1.0)) == "t --lr=1.0 --with python"


def test_a_text_for_a_shell_takes_no_flag():
    with pytest.raises(WordsError, match="a text for a shell"):
        merge(("bash", "-c", "t --lr 1"), [(LR, 1.0)])
    assert merge(("bash", "-c", "t --lr 1"), []) == ("bash", "-c", "t --lr 1")


@pytest.mark.parametrize(
    ("command", "after"),
    [
        ("t --x fit --y cfg", "t --seed=1 --x fit --lr=1.0 --y cfg"),
        ("t --seed 5 fit --seed 2 --lr 2", "t --seed=1 fit --seed 2 --lr=1.0"),
        ("t --lr fit fit", "t --seed=1 --lr fit fit --lr=1.0"),
    ],
)
def test_flags_of_a_subcommand_stand_behind_it_and_the_others_before_it(command, after):
    seed, lr = Flag("seed", "int"), Flag("lr", "float", subcommand="fit")
    assert merged(command, (seed, 1), (lr, 1.0)) == after


def test_a_subcommand_can_be_that_of_all_flags():
    seed = Flag("seed", "int", subcommand="")
    shape = Shape((LR, seed), subcommand="fit")
    assert merged("python t.py fit --x", (LR, 1.0), (seed, 1), shape=shape) == "python t.py --seed=1 fit --lr=1.0 --x"
    with pytest.raises(WordsError, match="the command has no 'fit'"):
        merge(("t",), [(LR, 1.0)], (), shape)


@pytest.mark.parametrize(
    ("command", "flag", "after"),
    [
        ("t --lr 1 --x --lr=2", LR, "t --x"),
        ("t --amp --no-amp x", AMP, "t x"),
        ("t --no-compile x", COMPILE, "t x"),
        ("t --tags a b --x", TAGS, "t --x"),
        ("t --profile-i 3 x", INTERVAL, "t x"),
        ("t x", LR, "t x"),
        ("t -- --lr 1", LR, "t -- --lr 1"),
    ],
)
def test_a_flag_that_is_unset_is_gone(command, flag, after):
    assert merged(command, (flag, None)) == after


def test_new_flags_keep_their_order():
    assert merged("t x", (Flag("a"), "1"), (Flag("b"), "2"), extra="--c=3 --d") == "t --a=1 --b=2 --c=3 --d x"


@pytest.mark.parametrize(
    ("command", "extra", "after"),
    [
        ("t --lr 1 --amp x", "--lr=2 --amp", "t --lr=2 --amp x"),
        ("t", "--profile-interval=5", "t --profile-interval=5"),
        ("t --profile_interval 7 x", "--profile-interval=5", "t --profile-interval=5 x"),
        ("t --tag=z", "--tag=a --tag=b", "t --tag=a --tag=b"),
        ("t --no-amp x", "--amp", "t --amp x"),
    ],
)
def test_an_undeclared_flag_wins(command, extra, after):
    assert merged(command, (INTERVAL, 60), extra=extra).replace(" --profile-interval=60", "") == after


def test_an_undeclared_flag_takes_as_many_old_words_as_its_declaration_says():
    assert merged("t --tags a b --x", extra="--tags=c", shape=Shape((TAGS,))) == "t --tags=c --x"


def test_an_undeclared_flag_of_the_wrapper_is_refused_since_the_program_would_get_it():
    nproc = Flag("nproc-per-node", "int")
    with pytest.raises(WordsError, match="is a flag of the wrapper"):
        merge(("torchrun", "t.py"), [], ("--nproc_per_node=4",), Shape((nproc,), wrapper_flags=("nproc-per-node",)))


@pytest.mark.parametrize("word", ["lr=2", "x", "--", "-", "", "--=x", "- x"])
def test_an_extra_word_that_is_no_flag_is_refused(word):
    with pytest.raises(WordsError, match="is no flag") as caught:
        merge(("t",), (), (word,))
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("command", "key", "after"),
    [
        ("python t.py lr=0.2 x=1", "lr=1e-4", "python t.py lr=1e-4 x=1"),
        ("python t.py x=1", "lr=1e-4", "python t.py lr=1e-4 x=1"),
        ("python t.py --config-name big x=1", "lr=1e-4", "python t.py --config-name big lr=1e-4 x=1"),
        ("python t.py --config-name a=b x=1", "lr=1e-4", "python t.py --config-name a=b lr=1e-4 x=1"),
        ("python t.py +lr=2 x=1 ++lr=3", "lr=1e-4", "python t.py +lr=1e-4 x=1"),
        ("python t.py ~lr x=1", "lr=1e-4", "python t.py lr=1e-4 x=1"),
        ("python t.py lr_x=2 x.lr=3", "lr=1e-4", "python t.py lr=1e-4 lr_x=2 x.lr=3"),
        ("python t.py", "lr=1e-4", "python t.py lr=1e-4"),
    ],
)
def test_a_key_is_replaced_and_the_rest_keeps_its_bytes(command, key, after):
    assert merged(command, (LR, LR.parse("1e-4")), shape=Shape((LR,), style="keyval")) == after


def test_quotes_and_lists_of_other_keys_stay_as_they_are():
    old = ("python", "t.py", "x='a b'", 'y="${z}"', "+l=[1, 2]", "lr=1", "t=a=b")
    assert merge(old, [(LR, 2.0)], (), Shape((LR,), style="keyval")) == (*old[:5], "lr=2.0", "t=a=b")


def test_a_declared_prefix_wins_over_the_old_one():
    flag = Flag("lr", "float", spelling="++optimizer.lr")
    assert merged("t +optimizer.lr=1 y=2", (flag, 2.0), shape=Shape((flag,), style="keyval")) == "t ++optimizer.lr=2.0 y=2"


def test_a_key_is_taken_away():
    drop = Flag("amp", "bool", off="~amp")
    shape = Shape((LR, drop), style="keyval")
    assert merged("t lr=1 amp=true y=2", (LR, None), (drop, False), shape=shape) == "t '~amp' y=2"


def test_undeclared_keys_and_options_meet_a_keyval_line():
    line = merged("t --multirun lr=1 y=2", extra="lr=3 ~y +z=1 --cfg=job", shape=Shape((LR,), style="keyval"))
    assert line == "t --cfg=job --multirun lr=3 +z=1 '~y'"


def test_one_flag_may_be_an_option_among_keys():
    flag = Flag("config-name", style="option")
    assert merged("t --config-name a lr=1", (flag, "b"), (LR, 2.0), shape=Shape((flag, LR), style="keyval")) == "t --config-name=b lr=2.0"


def test_a_flag_sets_a_variable_and_no_argument():
    flag = Flag("level", "int", env="LEVEL")
    amp = Flag("amp", "bool", env="AMP")
    pairs = [(flag, 3), (amp, False)]
    assert merge(("t", "--level", "1"), pairs) == ("t", "--level", "1")
    assert environment({"LEVEL": "1", "AMP": "1", "A": "b"}, pairs) == {"LEVEL": "3", "A": "b"}
    assert environment({"LEVEL": "1"}, [(flag, None)]) == {}
