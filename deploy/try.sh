#!/bin/sh
# Tries deployctl out of this clone: a virtual environment, an installation, `deployctl demo`.

usage() {
    cat <<'TEXT'
usage: sh deploy/try.sh [--keep DIR]

Installs this clone into the virtual environment .venv-try beside README.md, and runs `deployctl demo` from there: a small
training run on this machine, restarted by `deployctl restart ct200 --profile-interval 60`. It needs no Proxmox and no SSH.

  --keep DIR   leave the workspace and the training run in DIR, to go on from there
  -h, --help   this text

Other words go to `deployctl demo` as they are. The second time nothing is installed. To remove it: rm -r .venv-try
As root on Debian and Ubuntu a missing python3-venv is installed with apt-get; otherwise the script says what is missing.
TEXT
}

fail() { # what, what to do
    printf 'error: %s\n   do: %s\n' "$1" "$2" >&2
    exit 1
}

find_python() { # the first Python of at least 3.10; nothing when there is none
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
}

need_venv() { # Debian keeps ensurepip, without which a virtual environment has no pip, in a package of its own
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    command -v apt-get >/dev/null 2>&1 || fail "$python has no ensurepip" "install the venv module of this Python (on Debian: $package)"
    [ "$(id -u)" -eq 0 ] || fail "$python has no ensurepip" "sudo apt-get install $package, then run this again"
    echo "installing $package" >&2
    apt_install "$package"
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || fail "$python has no ensurepip although $package is installed" \
        "install another Python of at least 3.10 with its venv module"
}

apt_install() { # package; the lists may be old or not there at all
    said=$(DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" 2>&1) && return
    said=$(apt-get update -qq 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" 2>&1) && return
    printf '%s\n' "$said" | tail -n 5 >&2
    fail "apt-get could not install $1" "mend what it says above, or install $1 by hand"
}

install_clone() {
    echo "installing deployctl into $venv (once, about a minute)" >&2
    rm -rf "$venv" || fail "cannot write in $root" "run this as the owner of the clone"
    said=$("$python" -m venv "$venv" 2>&1) || {
        printf '%s\n' "$said" | tail -n 5 >&2
        fail "cannot make a virtual environment in $venv" "see above; is the clone writable, is the disk full?"
    }
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root" >"$venv/pip.log" 2>&1 || {
        tail -n 15 "$venv/pip.log" >&2
        fail "pip could not install the clone" "see above; without a network, give pip an index of your own (PIP_INDEX_URL)"
    }
    printf '%s\n' "$wanted" >"$venv/installed"
}

case "${1-}" in
-h | --help)
    usage
    exit 0
    ;;
esac

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || fail "cannot enter the clone" "run this as one who may read it"
venv=$root/.venv-try
python=$(find_python)
if [ -z "$python" ]; then
    fail "no Python of at least 3.10 was found on PATH" "install one (Debian 12 and newer, Ubuntu 22.04 and newer: apt-get install python3 python3-venv)"
fi

# Edits of the sources need no new installation, those of pyproject.toml and a clone that was moved do.
wanted="$root $("$python" -V 2>&1) $(cksum <"$root/pyproject.toml")"
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ] || [ ! -x "$venv/bin/deployctl" ]; then
    need_venv
    install_clone
fi
exec "$venv/bin/deployctl" demo "$@"
