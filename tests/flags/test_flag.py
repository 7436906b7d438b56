from __future__ import annotations

import pytest

from deployctl.errors import WordsError
from deployctl.flags import Flag, declare, declared

INTERVAL = Flag("profile-interval", type="int", min=0)


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        (INTERVAL, "60", 60),
        (INTERVAL, "0", 0),
        (INTERVAL, "+5", 5),
        (Flag("f", "int"), "-5", -5),
        (Flag("f", "float"), "1e-4", 1e-4),
        (Flag("f", "float"), ".5", 0.5),
        (Flag("f", "str"), "", ""),
        (Flag("f", "str"), "0644", "0644"),
        (Flag("f", "bool"), "true", True),
        (Flag("f", "bool"), "false", False),
        (Flag("f", "choice", choices=("a", "b")), "b", "b"),
        (Flag("f", "path"), "~/x y", "~/x y"),
        (Flag("f", "duration", min=60), "2m", 120.0),
    ],
)
def test_a_text_becomes_a_value(flag, text, value):
    parsed = flag.parse(text)
    assert parsed == value
    assert isinstance(parsed, type(value))


@pytest.mark.parametrize(
    ("flag", "text", "what", "todo"),
    [
        (INTERVAL, "-5", "'-5' is below 0", "give at least 0"),
        (Flag("f", "int", min=1, max=8), "9", "'9' is above 8", "give 1 to 8"),
        (Flag("f", "float", max=0.5), "0.6", "'0.6' is above 0.5", "give at most 0.5"),
        (Flag("f", "duration", max=60), "2m", "'2m' is above 60", "give at most 60 seconds"),
        (Flag("f", "int"), "1_000", "'1_000' is no whole number", "digits"),
        (Flag("f", "int"), "1.0", "'1.0' is no whole number", "digits"),
        (Flag("f", "int"), "٣", "'٣' is no whole number", "digits"),
        (Flag("f", "int"), "9" * 5000, "is no whole number", "digits"),
        (Flag("f", "float"), "nan", "'nan' is no number", "1e-4"),
        (Flag("f", "float"), "1e999", "'1e999' is no number", "1e-4"),
        (Flag("f", "float"), "e", "'e' is no number", "1e-4"),
        (Flag("f", "bool"), "yes", "'yes' is neither 'true' nor 'false'", "one of the two"),
        (Flag("f", "choice", choices=("small", "large")), "smal", "'smal' is no choice", "did you mean 'small'?"),
        (Flag("f", "path"), "", "'' is no path", "a path"),
        (Flag("f", "duration"), "60", "'60' is no duration", "write '60s'"),
        (Flag("f", "str"), "a\0", "NUL", "remove it"),
    ],
)
def test_a_wrong_text_is_refused(flag, text, what, todo):
    with pytest.raises(WordsError) as caught:
        flag.parse(text)
    assert (caught.value.where, caught.value.exit_status) == (f"--{flag.name}", 2)
    assert what in caught.value.what
    assert todo in caught.value.todo


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        (INTERVAL, 60, ["--profile-interval=60"]),
        (Flag("lr", "float"), Flag("lr", "float").parse("-1e-4"), ["--lr=-1e-4"]),
        (Flag("lr", "float"), 0.5, ["--lr=0.5"]),
        (Flag("f", "bool"), True, ["--f"]),
        (Flag("f", "bool"), False, []),
        (Flag("f"), "", ["--f="]),
        (Flag("f"), "--x y", ["--f=--x y"]),
        (Flag("f", "duration"), 90.0, ["--f=90"]),
        (Flag("batch-size", "int", spelling="--batch_size"), 8, ["--batch_size=8"]),
        (Flag("batch", "int", spelling="-b"), -8, ["-b", "-8"]),
        (Flag("lr", "float", spelling="-l"), Flag("lr", "float").parse("-1e-4"), ["-l-1e-4"]),
        (Flag("n", spelling="-n"), "-x", ["-n-x"]),
        (Flag("lr", "float", spelling="-lr"), -0.5, ["-lr=-0.5"]),
        (Flag("f", "bool", off="--no-f"), False, ["--no-f"]),
        (Flag("f", "bool", off="--f=False"), False, ["--f=False"]),
        (Flag("f", nargs="+"), ("a", "b"), ["--f", "a", "b"]),
        (Flag("f", "int", nargs="2"), (1, -2), ["--f", "1", "-2"]),
        (Flag("f", repeat="replace"), ("a", "b"), ["--f=a", "--f=b"]),
    ],
)
def test_a_value_becomes_words(flag, value, words):
    assert flag.render(value) == words


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        (Flag("lr", "float"), Flag("lr", "float").parse("1e-4"), ["lr=1e-4"]),
        (Flag("name"), "a b='c'", ["name=a b='c'"]),
        (Flag("amp", "bool"), False, ["amp=false"]),
        (Flag("amp", "bool", off="~amp"), False, ["~amp"]),
        (Flag("lr", spelling="+optimizer.lr"), "1", ["+optimizer.lr=1"]),
    ],
)
def test_a_value_becomes_a_key_and_its_value(flag, value, words):
    assert flag.render(value, "keyval") == words


@pytest.mark.parametrize(
    ("flag", "value", "text"),
    [
        (Flag("f", "int", env="F"), 0, "0"),
        (Flag("f", "duration", env="F"), 90.0, "90"),
        (Flag("f", "bool", env="F"), True, "1"),
        (Flag("f", "bool", env="F"), False, None),
        (Flag("f", "bool", env="F", off="0"), False, "0"),
        (Flag("f", env="F", repeat="replace"), ("a", "b"), "a b"),
    ],
)
def test_a_value_becomes_a_variable(flag, value, text):
    assert flag.variable(value) == text


@pytest.mark.parametrize(
    ("flag", "value", "what"),
    [
        (Flag("b", spelling="-b"), "--", "'--' as a value is lost"),
        (Flag("f"), "--", "'--' as a value is lost"),
        (Flag("f", nargs="+"), ("-x",), "begins with a dash"),
        (Flag("f", "float", nargs="+"), (Flag("f", "float").parse("-1e-4"),), "begins with a dash"),
    ],
)
def test_a_value_that_argparse_would_not_read_is_refused(flag, value, what):
    with pytest.raises(WordsError, match=what):
        flag.render(value)


@pytest.mark.parametrize(
    ("flag", "texts"),
    [
        (Flag("f", "duration"), ["90s"]),
        (Flag("f", "float"), ["1e-4"]),
        (Flag("f", "bool"), ["false"]),
        (Flag("f", "int", nargs="+"), ["1", "2"]),
    ],
)
def test_what_is_remembered_of_a_value_makes_the_same_value_again(flag, texts):
    value = flag.read(texts)
    assert flag.written(value) == texts
    assert flag.read(flag.written(value)) == value


def test_a_flag_of_two_values_is_given_twice():
    with pytest.raises(WordsError, match="wants 2 values, not 1") as caught:
        Flag("f", nargs="2").read(["a"])
    assert caught.value.where == "--f"


def test_a_flag_that_was_remembered_without_a_value_has_none():
    with pytest.raises(WordsError, match="has no value"):
        Flag("f").read([])


def test_a_fault_names_the_flag_as_deployctl_calls_it():
    with pytest.raises(WordsError) as caught:
        Flag("plan", "int", option="train-plan").parse("x")
    assert caught.value.where == "--train-plan"


def test_a_declaration_becomes_a_flag():
    raw = {"type": "duration", "min": "5s", "max": "1h", "default": "1m", "help": "pause", "spelling": "--save_every", "option": "save"}
    expected = Flag("save-every", "duration", "pause", 5.0, 3600.0, (), 60.0, spelling="--save_every", option="save")
    assert declare("save-every", raw) == expected


def test_a_declaration_of_several_values_has_several_defaults():
    assert declare("tags", {"nargs": "+", "default": ["a", 1]}).default == ("a", "1")
    assert declare("tags", {"repeat": "append", "default": "a"}).default == ("a",)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({"plan": {}, "other": {"option": "plan"}}, "--plan"),
        ({"amp": {"type": "bool"}, "no-amp": {"spelling": "--off"}}, "--no-amp"),
        ({"a": {"spelling": "--x"}, "b": {"spelling": "--x"}}, "the program's --x"),
        ({"a": {"also": ["--b"]}, "b": {}}, "the program's --b"),
        ({"a": {"env": "X"}, "b": {"env": "X"}}, "variable X"),
    ],
)
def test_two_flags_of_one_name_are_refused(raw, word):
    with pytest.raises(WordsError) as caught:
        declared(raw)
    assert (caught.value.what, caught.value.where) == (f"'{word}' is of the flag '{next(iter(raw))}' already", list(raw)[1])


def test_flags_keep_the_order_of_the_playbook():
    flags = declared({"b": {"type": "choice", "choices": [1, "two"], "default": 1}, "a": {}, "c": {"type": "bool", "default": False}})
    assert [(flag.name, flag.type, flag.default) for flag in flags] == [("b", "choice", "1"), ("a", "str", None), ("c", "bool", False)]


@pytest.mark.parametrize(
    ("name", "raw", "what", "todo"),
    [
        ("--a", {}, "'--a' is no flag", "without the dashes"),
        ("a b", {}, "'a b' is no flag", "letters"),
        ("a", "int", "wants a map", "{type: int"),
        ("a", None, "wants a map", "{type: int"),
        ("a", {"tpye": "int"}, "'tpye' is no key of flag", "did you mean 'type'?"),
        ("a", {"type": "itn"}, "'itn' is no type", "did you mean 'int'?"),
        ("a", {"type": ["int"]}, "wants a single value", "a text or a number"),
        ("a", {"type": "int", "min": 5, "max": 4}, "'min' is above 'max'", "exchange"),
        ("a", {"type": "int", "min": 1, "default": 0}, "default: '0' is below 1", "at least 1"),
        ("a", {"type": "int", "max": "x"}, "max: 'x' is no whole number", "digits"),
        ("a", {"type": "str", "min": 1}, "a str has no 'min'", "int, float, duration"),
        ("a", {"type": "bool", "default": "yes"}, "default: 'yes' is neither", "one of the two"),
        ("a", {"type": "choice"}, "'choices' and 'type: choice' go together", "both"),
        ("a", {"choices": ["x"]}, "'choices' and 'type: choice' go together", "both"),
        ("a", {"type": "choice", "choices": "x"}, "choices: wants a list", "[small, large]"),
        ("a", {"type": "choice", "choices": ["x"], "default": "y"}, "default: 'y' is no choice", "known: x"),
        ("a", {"spelling": "a b"}, "'a b' is no option", "--batch_size"),
        ("a", {"spelling": "--a=b"}, "'--a=b' is no option", "--batch_size"),
        ("a", {"spelling": "a", "style": "option"}, "'a' is no option", "--batch_size"),
        ("a", {"option": "--batch_size"}, "'--batch_size' is no option", "'spelling: --batch_size'"),
        ("a", {"also": "-b"}, "also: wants a list", "[-b, --batch]"),
        ("a", {"also": ["b c"]}, "'b c' is no option", "--batch_size"),
        ("a", {"repeat": "often"}, "'often' is no repeat", "known: append, once, replace"),
        ("a", {"nargs": "?"}, "'?' is no nargs", "a number"),
        ("a", {"nargs": "+", "repeat": "append"}, "'nargs' and 'repeat' do not go together", "one of them"),
        ("a", {"type": "bool", "nargs": "+"}, "a bool has one value", "'nargs'"),
        ("a", {"type": "bool", "off": "x"}, "'x' switches nothing off", "--no-compile"),
        ("a", {"off": "--no-a"}, "a str cannot be switched off", "`--unset`"),
        ("a", {"style": "hydra"}, "'hydra' is no style", "known: keyval, option"),
        ("a", {"style": "keyval", "nargs": "+"}, "a key=value has one value", "'[a,b]'"),
        ("a", {"newest": "*.pt"}, "'newest' is for one file", "'type: path'"),
        ("a", {"type": "path", "complete": ["x"]}, "'complete' checks the files of 'newest'", "both"),
        ("a", {"env": "1A"}, "'1A' is no name of a variable", "letters"),
        ("a", {"env": "A", "spelling": "--a"}, "'env' and 'spelling' do not go together", "a variable is no word"),
        ("a", {"nargs": 2, "default": ["x"]}, "default: wants 2 values, not 1", "once for each"),
    ],
)
def test_a_wrong_declaration_is_refused(name, raw, what, todo):
    with pytest.raises(WordsError) as caught:
        declare(name, raw)
    assert (caught.value.where, caught.value.exit_status) == (name, 2)
    assert what in caught.value.what
    assert todo in caught.value.todo
