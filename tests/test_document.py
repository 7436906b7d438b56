from __future__ import annotations

from pathlib import Path

import pytest

from deployctl.document import DEPTH, Document, fit, load
from deployctl.errors import WordsError
from deployctl.fields import AbsolutePath, Duration, Model, Name, SignalName, Text


class RungModel(Model):
    signal: SignalName
    wait: Duration


class Stop(Model):
    ladder: tuple[RungModel, ...] = ()
    extend: int = 3
    quiet: bool = False
    share: float = 0.5


class Program(Model):
    name: Name = "x"
    directory: AbsolutePath = "/"
    command: tuple[Text, ...] = ()
    stop: Stop = Stop()


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content: str | bytes) -> Path:
        path = tmp_path / "p.yaml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def refusal(path: Path, model: type[Model] | None = None) -> WordsError:
    with pytest.raises(WordsError) as caught:
        document = load(path)
        if model:
            fit(document, model)
    assert caught.value.exit_status == 2
    return caught.value


def test_data_is_plain(write):
    assert load(write('a: [1, -2.5, true, null, text, "5"]\nb: {c: }\n')).data == {
        "a": [1, -2.5, True, None, "text", "5"],
        "b": {"c": None},
    }


@pytest.mark.parametrize(
    "word",
    [
        *("yes", "no", "on", "off", "y", "True", "FALSE", "Null", "0644", "022", "0o644", "0x1f", "22:22", "1:30:00", "1_000", "+5"),
        *(".inf", "-.nan", "1e400", "2020-01-01", "1.2.3", "=", "9" * 30, "9" * 900),
    ],
)
def test_a_word_that_other_programs_take_for_a_value_stays_text(write, word):
    data = load(write(f"a: {word}\n{word}: b\n")).data
    assert data == {"a": word, word: "b"}


def test_every_key_is_the_text_that_was_written(write):
    assert list(load(write("1: a\ntrue: b\n~: c\n1.50: d\n")).data) == ["1", "true", "~", "1.50"]


def test_a_number_in_a_text_is_as_it_was_written(write):
    program = fit(load(write("command: [x, 49152, 0.10, 1e-4, -1, 3.10, true, 007]\n")), Program)
    assert program.command == ("x", "49152", "0.10", "1e-4", "-1", "3.10", "true", "007")


def test_a_place_is_file_and_line(write):
    document = load(write("a:\n  - x\n  - y: 1\n    z: 2\n"))
    assert [document.where(*keys) for keys in [(), ("a",), ("a", 1), ("a", 1, "z")]] == ["p.yaml:1", "p.yaml:1", "p.yaml:3", "p.yaml:4"]


def test_a_place_that_is_not_there_is_the_nearest_around_it(write):
    document = load(write("\na:\n  b: 1\n"))
    assert document.where("a", "c", "d") == "p.yaml:2"


def test_a_file_outside_the_working_directory_is_shown_as_it_was_named(write, tmp_path, monkeypatch):
    path = write("a: 1\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load(path).where("a") == f"{path}:1"


@pytest.mark.parametrize(
    ("content", "where", "what", "todo"),
    [
        ("a: 1\nb: 2\na: 3\n", "p.yaml:3", "'a' stands twice, in lines 1 and 3", "keep one"),
        ("a: {b: 1,\n b: 2}\n", "p.yaml:2", "'b' stands twice, in lines 1 and 2", "keep one"),
        ("'1': a\n1: b\n", "p.yaml:2", "'1' stands twice", "keep one"),
        ("a: b\n\tc: d\n", "p.yaml:2", "", "use spaces instead of the tab"),
        ("a: 1\n---\nb: 2\n", "p.yaml:2", "single document", "look at this line"),
        ("x: 1\na: !!python/object/apply:os.system [ls]\n", "p.yaml:2", "is not known here", "in quotes"),
        ("a: !x b\n", "p.yaml:1", "the tag '!x' is not known here", "in quotes"),
        ("a: &x 1\n", "p.yaml:1", "anchors", "begins with '&' in quotes"),
        ("include: [*.py]\n", "p.yaml:1", "alias", "begins with '*' in quotes"),
        ("include: [*py]\n", "p.yaml:1", "aliases ('*') are not known here", "begins with '*' in quotes"),
        ("<<: {a: 1}\n", "p.yaml:1", "merge keys", "write the keys out"),
        ("[a]: 1\n", "p.yaml:1", "a key must be a text", "key: value"),
        ("a: %h\n", "p.yaml:1", "'%'", "begins with '%' in quotes"),
        ("a: b: c\n", "p.yaml:1", "mapping values", "holds ': ' in quotes"),
        ("a: 1\nb: 'x\n\n", "p.yaml:4", "(begun in line 2)", "look at this line"),
        ("a: [1\n", "p.yaml:2", "flow sequence", "look at this line"),
        ("[" * 3000, "p.yaml:1", f"deeper than {DEPTH}", "look at"),
        ("- " * 3000, "p.yaml:1", f"deeper than {DEPTH}", "look at"),
        (b"a: 1\nb: \xff\n", "p.yaml:2", "not UTF-8", "save the file as UTF-8"),
        (b"\xff\xfea\0", "p.yaml:1", "not UTF-8", "save the file as UTF-8"),
        ("a: 1\nb: \0\n", "p.yaml:2", "a character", "remove it"),
    ],
)
def test_a_broken_file_names_its_line_and_what_to_do(write, content, where, what, todo):
    error = refusal(write(content))
    assert error.where == where
    assert what in error.what
    assert todo in error.todo


def test_a_byte_order_mark_changes_nothing(write):
    assert load(write(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")).data == {"a": 1, "b": 2}


def test_a_missing_file_is_named(tmp_path):
    error = refusal(tmp_path / "none.yaml")
    assert (error.where, error.what) == (str(tmp_path / "none.yaml"), "there is no such file")


def test_a_directory_is_no_file(tmp_path):
    assert refusal(tmp_path).what == "this is a directory, not a file"


def test_a_path_through_a_file_is_said_so(write):
    assert "cannot be read" in refusal(write("a: 1") / "b.yaml").what


@pytest.mark.parametrize(
    ("content", "where", "what", "todo"),
    [
        ("stop:\n  timeot: 5\n", "p.yaml:2", "stop: 'timeot' is no key of stop", "known: extend, ladder, quiet, share"),
        ("nmae: x\n", "p.yaml:1", "'nmae' is no key of program", "did you mean 'name'?"),
        ("stop:\n  ladder:\n    - {signal: INT, wait: 5s}\n    - {signal: TREM, wait: 5s}\n", "p.yaml:4",
         "stop: ladder[1]: signal: 'TREM' is no signal", "did you mean 'TERM'?"),
        ("stop:\n  ladder:\n    - {signal: INT, wait: 180}\n", "p.yaml:3", "stop: ladder[0]: wait: '180' is no duration", "write '180s'"),
        ("stop:\n  ladder:\n    - signal: INT\n", "p.yaml:3", "stop: ladder[0]: 'wait' is missing", "add 'wait: …'"),
        ("stop:\n  ladder: INT\n", "p.yaml:2", "stop: ladder: wants a list, not 'INT'", "write a list"),
        ("stop: \n", "p.yaml:1", "stop: wants a map of keys and values, not nothing", "write a map"),
        ("stop: {extend: 0644}\n", "p.yaml:1", "stop: extend: wants a whole number, not '0644'", "write a whole number"),
        ("stop: {extend: '5'}\n", "p.yaml:1", "stop: extend: wants a whole number, not '5'", "write a whole number"),
        ("stop: {extend: true}\n", "p.yaml:1", "stop: extend: wants a whole number, not 'true'", "write a whole number"),
        ("stop: {extend: 1.5}\n", "p.yaml:1", "stop: extend: wants a whole number, not '1.5'", "write a whole number"),
        ("stop: {quiet: yes}\n", "p.yaml:1", "stop: quiet: wants true or false, not 'yes'", "write true or false"),
        ("stop: {share: on}\n", "p.yaml:1", "stop: share: wants a number, not 'on'", "write a number"),
        ("directory: train\n", "p.yaml:1", "directory: 'train' is no absolute path", "for example '/root/app'"),
        ("name: -x\n", "p.yaml:1", "name: '-x' is no name", "the first a letter or digit"),
        ("name: \"a\\n\"\n", "p.yaml:1", "name: 'a\n' is no name", "at most 60"),
        ("command:\n  - a\n  - --x: y\n", "p.yaml:3", "command[1]: wants a text, not a map", "put it in quotes"),
        ("command:\n  - a\n  - \n", "p.yaml:3", "command[1]: nothing stands here", "in quotes if"),
        ("command: [\"a\\0\"]\n", "p.yaml:1", "command[0]: the text holds a NUL byte", "remove it"),
        ("", "p.yaml:1", "wants a map of keys and values, not nothing", "write a map"),
        ("- a\n", "p.yaml:1", "wants a map of keys and values, not a list", "write a map"),
    ],
)  # fmt: skip
def test_a_fault_of_the_data_names_its_line_and_what_to_do(write, content, where, what, todo):
    error = refusal(write(content), Program)
    assert (error.where, error.what) == (where, what)
    assert todo in error.todo


def test_of_several_faults_the_first_in_the_file_is_named(write):
    assert refusal(write("stop: {extend: x}\nname: -y\n"), Program).where == "p.yaml:1"


def test_the_fields_of_a_shorthand_stand_where_the_shorthand_stands(write):
    document: Document = load(write("steps:\n  - stop:\n    - INT 5s\n    - TREM 5s\n"))
    value = {"ladder": [{"signal": "INT", "wait": "5s"}, {"signal": "TREM", "wait": "5s"}]}
    with pytest.raises(WordsError) as caught:
        fit(document, Stop, ("steps", 0, "stop"), value)
    assert str(caught.value) == "p.yaml:4: stop: ladder[1]: 'TREM' is no signal"


def test_what_fits_is_a_frozen_model(write):
    stop = fit(load(write("stop: {ladder: [{signal: sigint, wait: 1m30s}], share: 1}\n")), Program).stop
    assert stop == Stop(ladder=(RungModel(signal="INT", wait="90s"),), share=1)  # type: ignore[arg-type]
