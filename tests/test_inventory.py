from __future__ import annotations

from pathlib import Path

import pytest

from deployctl.errors import WordsError
from deployctl.inventory import Inventory, find_hosts_file, load

EXAMPLE = Path(__file__).parent.parent / "hosts.example.yaml"
GOOD = """\
hosts:
  pve1: {ssh: root@pve1.example.org}
  gpu1: {ssh: "gpu1:2222", ssh_config: ssh/config}
targets:
  ct200: {host: pve1, ct: 200, python: /opt/bin/python3}
  gpu1: {host: gpu1}
  here: {local: true}
groups:
  all: [here, ct200, gpu1]
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(content: str) -> Path:
        path = tmp_path / "hosts.yaml"
        path.write_text(content)
        return path

    return write


@pytest.fixture
def inventory(write) -> Inventory:
    return load(write(GOOD))


def test_the_example_loads():
    assert [target.kind for target in load(EXAMPLE).select(["trainers", "gpu1", "here"])] == ["ct", "ct", "host", "local"]


def test_a_container_has_its_host_id_and_interpreter(inventory):
    [target] = inventory.select(["ct200"])
    assert (target.kind, target.ct, target.python) == ("ct", 200, "/opt/bin/python3")
    assert target.host is not None
    assert (target.host.name, target.host.ssh, target.host.ssh_config) == ("pve1", "root@pve1.example.org", None)


def test_an_ssh_config_is_relative_to_the_hosts_file(inventory, tmp_path):
    host = inventory.targets["gpu1"].host
    assert host is not None
    assert host.ssh_config == tmp_path / "ssh/config"


def test_a_local_target_has_no_host(inventory):
    [target] = inventory.select(["here"])
    assert (target.kind, target.host, target.ct, target.python) == ("local", None, None, None)


def test_targets_keep_the_order_of_the_words_and_come_once(inventory):
    assert [target.name for target in inventory.select(["gpu1", "all", "ct200", "gpu1"])] == ["gpu1", "here", "ct200"]


@pytest.mark.parametrize(
    ("word", "what", "todo"),
    [
        ("ct20", "'ct20' is no target or group", "did you mean 'ct200'?"),
        ("al", "'al' is no target or group", "did you mean 'all'?"),
        ("--plna", "'--plna' is no target", "looks like an option"),
        ("", "'' is no target or group", "known: all, ct200, gpu1, here"),
    ],
)
def test_an_unknown_word_selects_nothing(inventory, word, what, todo):
    with pytest.raises(WordsError) as caught:
        inventory.select(["here", word])
    assert (caught.value.what, caught.value.exit_status) == (what, 2)
    assert todo in caught.value.todo


def test_a_file_without_targets_says_where_to_write_them(write):
    with pytest.raises(WordsError) as caught:
        load(write("hosts: {}\n")).select(["a"])
    assert caught.value.todo.endswith("hosts.yaml")


@pytest.mark.parametrize(
    ("content", "where", "what", "todo"),
    [
        ("hosts:\n  a: {ssh: x}\ntargets:\n  t:\n    ct: 200\n    host: b\n", "hosts.yaml:6", "targets: t: 'b' is no host", "known: a"),
        ("targets:\n  t: {host: b}\n", "hosts.yaml:2", "targets: t: 'b' is no host", "write it into `hosts:`"),
        ("targets:\n  t: {ct: 200}\n", "hosts.yaml:2", "targets: t: it is not clear where this target is", "{local: true}"),
        ("targets:\n  t: {}\n", "hosts.yaml:2", "targets: t: it is not clear where this target is", "{local: true}"),
        ("hosts: {a: {ssh: x}}\ntargets:\n  t: {local: true, host: a}\n", "hosts.yaml:3", "it is not clear", "{local: true}"),
        ("targets:\n  t: {local: true, ct: 100}\n", "hosts.yaml:2", "it is not clear", "{local: true}"),
        ("targets:\n  t: {host: a, ct: 99}\n", "hosts.yaml:2", "targets: t: ct: '99' is below 100", "correct"),
        ("targets:\n  t: {host: a, ct: 0200}\n", "hosts.yaml:2", "targets: t: ct: wants a whole number, not '0200'", "whole number"),
        ("targets:\n  t: {locl: true}\n", "hosts.yaml:2", "targets: t: 'locl' is no key of target", "did you mean 'local'?"),
        ("targets:\n  t: {local: yes}\n", "hosts.yaml:2", "targets: t: local: wants true or false, not 'yes'", "true or false"),
        ("targets:\n  t: {local: true, python: python3}\n", "hosts.yaml:2", "targets: t: python: 'python3' is no absolute path", "whole"),
        ("targets:\n  -t: {local: true}\n", "hosts.yaml:2", "targets: -t: '-t' is no name", "letter or digit"),
        ("targets:\n  'a:b': {local: true}\n", "hosts.yaml:2", "targets: a:b: 'a:b' is no name", "letter or digit"),
        ("hosts:\n  a: {}\n", "hosts.yaml:2", "hosts: a: 'ssh' is missing", "add 'ssh: …'"),
        ("hosts:\n  a: {ssh: -oProxyCommand=x}\n", "hosts.yaml:2", "hosts: a: ssh: '-oProxyCommand=x' is no ssh address", "[user@]name"),
        ("hosts:\n  a: {ssh: root@-x}\n", "hosts.yaml:2", "is no ssh address", "[user@]name"),
        ("hosts:\n  a: {ssh: 'a b'}\n", "hosts.yaml:2", "is no ssh address", "[user@]name"),
        ("hosts:\n  a: {ssh: 'a:99999'}\n", "hosts.yaml:2", "is no ssh address", "[user@]name"),
        ("hosts:\n  a: {ssh: ''}\n", "hosts.yaml:2", "is no ssh address", "[user@]name"),
        ("targets:\n  t: {local: true}\ngroups:\n  g:\n    - t\n    - u\n", "hosts.yaml:6", "groups: g[1]: 'u' is no target", "known: t"),
        ("targets:\n  t: {local: true}\ngroups:\n  t: [t]\n", "hosts.yaml:4", "'t' is a group and a target (line 2)", "another name"),
        ("groups:\n  g: []\n", "hosts.yaml:2", "groups: g: the group is empty", "remove it"),
        ("group: {}\n", "hosts.yaml:1", "'group' is no key of hosts", "did you mean 'groups'?"),
    ],
)
def test_a_faulty_hosts_file_names_the_line(write, content, where, what, todo):
    with pytest.raises(WordsError) as caught:
        load(write(content))
    assert (caught.value.where, caught.value.exit_status) == (where, 2)
    assert what in caught.value.what
    assert todo in caught.value.todo


@pytest.mark.parametrize("ssh", ["gpu1", "root@gpu1", "gpu1:22", "a@b@gpu1", "root@[2001:db8::2]:22", "2001:db8::2", "10.0.0.1"])
def test_an_ssh_address_is_kept_as_written(write, ssh):
    host = load(write(f"hosts: {{a: {{ssh: '{ssh}'}}}}\ntargets: {{t: {{host: a}}}}\n")).targets["t"].host
    assert host is not None
    assert host.ssh == ssh


@pytest.fixture
def user_config(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    directory = tmp_path / "config" / "deployctl"
    directory.mkdir(parents=True)
    return directory


def test_the_variable_wins_over_the_directory(write, tmp_path, user_config):
    write(GOOD)
    (tmp_path / "other.yaml").write_text(GOOD)
    assert find_hosts_file({"DEPLOYCTL_HOSTS": "other.yaml"}, tmp_path) == tmp_path / "other.yaml"


def test_the_directory_wins_over_the_users_file(write, tmp_path, user_config):
    (user_config / "hosts.yaml").write_text(GOOD)
    assert find_hosts_file({}, tmp_path) == user_config / "hosts.yaml"
    assert find_hosts_file({"DEPLOYCTL_HOSTS": ""}, write(GOOD).parent) == tmp_path / "hosts.yaml"


def test_a_wrong_variable_falls_back_to_nothing(write, tmp_path):
    write(GOOD)
    with pytest.raises(WordsError) as caught:
        find_hosts_file({"DEPLOYCTL_HOSTS": "/none"}, tmp_path)
    assert (caught.value.where, caught.value.what) == ("$DEPLOYCTL_HOSTS", "there is no file '/none'")


def test_without_a_hosts_file_the_places_and_the_remedy_are_named(tmp_path, user_config):
    with pytest.raises(WordsError) as caught:
        find_hosts_file({}, tmp_path)
    assert str(tmp_path / "hosts.yaml") in caught.value.what
    assert str(user_config / "hosts.yaml") in caught.value.what
    assert "targets: {here: {local: true}}" in caught.value.todo


def test_only_a_container_can_be_started(tmp_path: Path) -> None:
    hosts = "hosts: {pve1: {ssh: pve1}}\ntargets:\n  ct200: {host: pve1, ct: 200, start: true}\n  pve1: {host: pve1%s}\n"
    (tmp_path / "hosts.yaml").write_text(hosts % "")
    assert [target.start for target in load(tmp_path / "hosts.yaml").select(["ct200", "pve1"])] == [True, False]
    (tmp_path / "hosts.yaml").write_text(hosts % ", start: true")
    with pytest.raises(WordsError, match="'start' has no container"):
        load(tmp_path / "hosts.yaml")
