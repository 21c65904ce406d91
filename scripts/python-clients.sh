#!/usr/bin/env bash
# The Python clients of the end-to-end tests, in an environment of their own.
#
#   scripts/python-clients.sh           makes it once for this user
#   scripts/python-clients.sh --ready   only says where it is; fails where it was not made yet
#
# Prints the path of its Python. All else goes to stderr. Exit 1: cannot be had here.
set -euo pipefail

wanted=$(cd "$(dirname "$0")" && pwd)/python-clients.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleet-engine/python-clients
python=$cache/bin/python

fail() { echo "python-clients: $*" >&2; exit 1; }
# The list is copied last, so an environment that was not finished does not count.
is_ready() { cmp -s "$wanted" "$cache/made-of.txt" && "$python" -c 'import anthropic, ollama, openai' 2>/dev/null; }

command -v python3 >/dev/null || fail "no Python 3 found"

if [ "${1:-}" = --ready ]; then
  is_ready || fail "not made yet; run scripts/python-clients.sh (about a minute, once)"
  echo "$python"
  exit
fi

mkdir -p "${cache%/*}"
# The lock belongs to the open file, so it goes when this shell goes; flock(1) does not exist everywhere.
exec 9>"$cache.lock"
python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'

if ! is_ready; then
  rm -rf "$cache"
  python3 -m venv "$cache" >&2 || fail "Python's venv module is missing"
  "$python" -m pip --disable-pip-version-check --quiet install -r "$wanted" >&2 || fail "the clients cannot be installed"
  cp "$wanted" "$cache/made-of.txt"
  is_ready || fail "the clients are installed but cannot be imported"
fi
echo "$python"
