#!/bin/sh
# Runs all checks and tests, on every Python that is here.

usage() {
    cat <<'TEXT'
usage: sh tests/run.sh [-- PYTEST-ARGUMENTS]

Makes what the tests need and runs everything:
  ruff, mypy, and the suite with the lab (tests/lab), on one Python of at least 3.10
  the agent's own tests on Python 3.8 and on the newest Python found
  the controller's tests that need no lab on the other Pythons from 3.10 to 3.13 (whole runs: those of test_restart.py)
Pythons are looked for on PATH and in pyenv. Virtual environments (.venv-test*) stay and are used again.

As root on Debian or Ubuntu it installs missing packages with apt-get, brings the lab up and, if it was down before, down again.
Without root it runs what it can, and says at the end what it left out; with CI=true leaving something out is a failure, and so is a test
that is skipped.
Words after -- go to pytest; then only the suite runs, on one Python: sh tests/run.sh -- -k checkpoint -x
TEXT
}

say() { printf '%s\n' "== $*"; }
leave_out() { printf '%s\n' "$*" >>"$work/left-out"; }
fail() { # what, what to do
    printf 'error: %s\n   do: %s\n' "$1" "$2" >&2
    exit 1
}

# What is here ------------------------------------------------------------------------------------------------------------------

is_python() { # command, MAJOR.MINOR: a pyenv shim may be there and lead nowhere, so it is run
    [ "$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$2" ]
}

find_python() { # MAJOR.MINOR; prints a path, nothing when there is none
    for found in "python$1" "$pyenv_versions/$1".*/bin/python python3; do
        if is_python "$found" "$1"; then
            command -v "$found"
            return
        fi
    done
}

missing_packages() {
    for package in lxc openssh-server openssh-client debootstrap uidmap util-linux perl-base hostname python3 python3-venv; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
    done
}

apt_install() { # packages; lxcfs would be a daemon that no test needs
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" lxcfs-
}

install_packages() {
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        return
    fi
    missing=$(missing_packages)
    [ -n "$missing" ] || return
    say "installing $missing"
    # shellcheck disable=SC2086 # a list of words
    apt_install $missing >"$work/apt" 2>&1 || { apt-get update -qq && apt_install $missing; } >"$work/apt" 2>&1 || {
        tail -n 15 "$work/apt" >&2
        fail "apt-get could not install $missing" "mend what it says above, or install them by hand"
    }
}

# Virtual environments ------------------------------------------------------------------------------------------------------------

venv_stamp() { # directory, kind, python: what it was made for
    echo "$root $2 $("$3" -c 'import sys; print(sys.version)' | tr '\n' ' ') $(cksum <pyproject.toml)"
}

make_venv() { # directory, kind, python; kind `full`, or `agent`: pytest and xdist alone. The clone itself is installed later, one by one
    [ "$(cat "$1/made" 2>/dev/null)" = "$(venv_stamp "$@")" ] && return
    rm -rf "$1" && "$3" -m venv "$1" || return
    if [ "$2" = agent ]; then
        printf 'pytest>=8\npytest-xdist>=3\n' >"$1/wanted"
    else
        "$1/bin/python" - >"$1/wanted" <<'PYTHON' || return
try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
print(*project["build-system"]["requires"], *project["project"]["dependencies"], *project["project"]["optional-dependencies"]["test"], sep="\n")
print("setuptools>=70.1")  # brings bdist_wheel along
PYTHON
    fi
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$1/wanted"
}

install_clone() { # directory, kind, python: the second part of make_venv
    [ "$(cat "$1/made" 2>/dev/null)" = "$(venv_stamp "$@")" ] && return
    [ "$2" = agent ] || "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . || return
    venv_stamp "$@" >"$1/made"
}

make_venvs() { # reads `directory kind python` lines from $work/venvs; all at once, since most of it is waiting
    while read -r directory kind interpreter; do
        make_venv "$directory" "$kind" "$interpreter" >"$work/$directory.log" 2>&1 </dev/null &
        printf '%s %s %s %s\n' "$!" "$directory" "$kind" "$interpreter"
    done <"$work/venvs" >"$work/started"
    while read -r pid directory kind interpreter; do
        wait "$pid" && install_clone "$directory" "$kind" "$interpreter" >>"$work/$directory.log" 2>&1 </dev/null && continue
        tail -n 15 "$work/$directory.log" >&2
        fail "cannot make the virtual environment $directory with $interpreter" "see above (without a network pip needs an index of its own)"
    done <"$work/started"
}

# The lab -------------------------------------------------------------------------------------------------------------------------

lab_begin() { # starts in the background what lab_ready waits for
    lab=none
    if [ "$(id -u)" -ne 0 ]; then
        leave_out "the tests that need the lab: not root"
    elif tests/lab/lab status >/dev/null 2>&1; then
        lab=theirs
        say "the lab is up already and stays up"
    else
        lab=ours
        say "bringing the lab up"
        tests/lab/lab up >"$work/lab" 2>&1 &
        lab_pid=$!
    fi
}

lab_ready() {
    [ "$lab" = ours ] || return
    wait "$lab_pid" && return
    tail -n 15 "$work/lab" >&2
    fail "the lab does not come up" "see above; then: tests/lab/lab up"
}

# shellcheck disable=SC2317 # called by the trap
leave() { # at every end of this script
    status=$?
    trap '' INT TERM HUP
    [ -z "$others_pid" ] || kill "$others_pid" 2>/dev/null
    if [ "$lab" = ours ]; then
        wait "$lab_pid" 2>/dev/null # half a lab cannot be taken down
        say "taking the lab down"
        tests/lab/lab down >"$work/lab" 2>&1 || {
            tail -n 15 "$work/lab" >&2
            [ "$status" -ne 0 ] || status=1
        }
    fi
    rm -rf "$work"
    trap - EXIT
    exit "$status"
}

# Running -------------------------------------------------------------------------------------------------------------------------

run() { # title, command…: runs it, keeps its result and its time for the summary
    title=$1
    shift
    say "$title"
    began=$(date +%s)
    if "$@"; then word=ok; else word=FAILED; fi
    printf '%-6s %-44s %4d s\n' "$word" "$title" $(($(date +%s) - began)) >>"$work/summary"
}

version() { "$1" -c 'import platform; print(platform.python_version())'; }

run_agent_tests() { # directory of the virtual environment; conftest.py of tests/ needs the controller, which 3.8 cannot run
    # shellcheck disable=SC2086 # lists of words
    run "agent's tests, Python $(version "$1/bin/python")" env PYTHONPATH="$root/src" \
        $beside "$1/bin/python" -m pytest $strict -q -n 4 --dist worksteal -p no:cacheprovider --confcutdir=tests/agent tests/agent tests/agent_ops
}

run_other_pythons() {
    [ -z "$agent_old" ] || run_agent_tests "$agent_old"
    run_agent_tests "$agent_new"
    for directory in $others; do
        case $directory in *3.11 | *3.12) rest='' ;; *) rest=$ends ;; esac
        # shellcheck disable=SC2086 # lists of words
        run "the controller's own, Python $(version "$directory/bin/python")" $beside "$directory/bin/python" -m pytest $strict \
            -q -n 4 --dist worksteal -p no:cacheprovider -m "not lab and not serial" $controller $rest
    done
}

choose_pythons() { # writes $work/venvs; the first is the main one, agent_old, agent_new and others name the rest
    for wanted in 3.11 3.12 3.13 3.10 3.14; do
        main=$(find_python "$wanted")
        [ -z "$main" ] || break
    done
    [ -n "$main" ] || fail "no Python of at least 3.10 was found" "install one: apt-get install python3 python3-venv, or pyenv install 3.12"
    main_version=$wanted
    echo ".venv-test full $main" >"$work/venvs"
    [ "$whole" = yes ] || return
    for wanted in 3.10 3.11 3.12 3.13; do
        [ "$wanted" != "$main_version" ] || continue
        found=$(find_python "$wanted")
        if [ -n "$found" ]; then
            echo ".venv-test-$wanted full $found" >>"$work/venvs"
            others="$others .venv-test-$wanted"
        else
            leave_out "the controller's own tests on Python $wanted: not found (pyenv install $wanted)"
        fi
    done
    found=$(find_python 3.8)
    if [ -n "$found" ]; then
        agent_old=.venv-test-agent-3.8
        echo "$agent_old agent $found" >>"$work/venvs"
    else
        leave_out "the agent's tests on Python 3.8, its oldest: not found (pyenv install 3.8)"
    fi
    for wanted in 3.15 3.14 3.13 3.12 3.11 3.10; do
        found=$(find_python "$wanted")
        [ -z "$found" ] || break
    done
    agent_new=.venv-test-agent-$wanted
    echo "$agent_new agent $found" >>"$work/venvs"
}

finish() {
    failures=$(grep -c '^FAILED' "$work/summary")
    echo
    cat "$work/summary"
    if [ -s "$work/left-out" ]; then
        echo
        echo "LEFT OUT:"
        sed 's/^/  /' "$work/left-out"
    fi
    echo
    if [ "$failures" -gt 0 ]; then
        echo "FAILED: $failures of the above, after $(($(date +%s) - begun)) s"
        exit 1
    elif [ -s "$work/left-out" ] && [ "${CI-}" = true ]; then
        echo "FAILED: CI=true and something was left out, after $(($(date +%s) - begun)) s"
        exit 1
    fi
    echo "all of the above is well, after $(($(date +%s) - begun)) s"
    exit 0
}

whole=yes
case "${1-}" in
'') ;;
-h | --help)
    usage
    exit 0
    ;;
--)
    whole=no
    shift
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

# What depends on the controller's Python: words, files, plans, reports, flags, and whole restarts of this machine; the command line as a
# person meets it, which takes long, on the oldest and the newest.
controller="tests/flags tests/transports/test_local.py tests/test_restart.py tests/test_document.py tests/test_inventory.py tests/test_journal.py
    tests/test_plan.py tests/test_playbook.py tests/test_report.py tests/test_values.py tests/test_workload.py"
ends=tests/test_cli.py
beside="nice -n 10 env --default-signal=INT,QUIT" # a shell's & leaves them ignored, and no program of a test could be interrupted
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "${root:-/nowhere}" || fail "cannot enter the clone" "run this as one who may read it"
unset PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED # what a shell sets must not hide what deployctl forgets to set
work=$(mktemp -d) || fail "cannot make a temporary directory" "is the disk full?"
begun=$(date +%s)
lab=none lab_pid='' others_pid='' agent_old='' agent_new='' others='' strict=''
[ "${CI-}" != true ] || strict="-p tests.no_skips"
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
pyenv_versions=$(pyenv root 2>/dev/null || echo "${PYENV_ROOT:-$HOME/.pyenv}")/versions

install_packages
lab_begin
choose_pythons
say "making what is missing of $(cut -d ' ' -f 1 "$work/venvs" | tr '\n' ' ')"
make_venvs
python=.venv-test/bin/python
if [ "$whole" = yes ]; then
    run "ruff" "$python" -m ruff check
    run "mypy" "$python" -m mypy
fi
lab_ready
suite="the suite with the lab" without=
if [ "$lab" = none ]; then
    suite="the suite without the lab"
    without=" and not lab"
fi
if [ "$whole" = no ]; then
    [ -z "$without" ] || set -- -m "not lab" "$@"
    # shellcheck disable=SC2086 # a list of words
    run "$suite, Python $(version "$python")" "$python" -m pytest $strict "$@"
    finish
fi
# Most tests wait most of the time, so that two cores carry eight of them; those that measure or disturb the whole lab run alone, and the
# agent's own ones on its oldest and the newest Python.
# shellcheck disable=SC2086 # a list of words
run "$suite, Python $(version "$python")" "$python" -m pytest $strict -q -n 8 --dist worksteal -m "not serial$without" \
    --ignore tests/agent --ignore tests/agent_ops
# Those wait even more; what needs no lab is run beside them, behind them in the queue for a core.
run_other_pythons >"$work/others" 2>&1 &
others_pid=$!
# shellcheck disable=SC2086 # a list of words
run "those that run alone, Python $(version "$python")" "$python" -m pytest $strict -q -m "serial$without"
wait "$others_pid"
others_pid=''
cat "$work/others"
finish
