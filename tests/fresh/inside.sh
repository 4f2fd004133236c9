#!/usr/bin/env bash
# The part of run.sh in the new root: an ordinary user clones the project and runs the two commands of README.
set -euo pipefail

# Its processor time shows the cost on a machine that has other work.
TIMEFORMAT='== done in %0R s, with %0U s of processor time'
step() {
    echo "== $*"
    time "$@"
}

# Prints the first page of the server, or fails.
page() {
    exec 3<> /dev/tcp/127.0.0.1/8080 || return
    printf 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    cat <&3
    exec 3>&-
}

# Runs the command until its first page, and stops the server.
serve() {
    local server answer
    "$@" > ~/access.log &
    server=$!
    until answer=$(page 2> /dev/null); do
        kill -0 "$server" || { wait "$server"; exit 1; }
        sleep 1
    done
    head -1 <<< "$answer"
    grep --quiet '^HTTP/1.1 200 ' <<< "$answer"
    kill -TERM "$server"
    wait "$server"
}

echo "$(id -un) on $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release), $(nproc) processors, $(rustc --version), $(gcc --version | head -1)"
for tool in g++ make cmake pkg-config python3 openssl curl strace pebble; do
    ! command -v "$tool" || { echo "$tool is here, and must not be needed"; exit 1; }
done

cd
step git -c advice.detachedHead=false clone --quiet /tenfold.bundle tenfold
cd tenfold
# The first two commands of the first block.
mapfile -t commands < <(sed -n '/^```sh/,/^```/s/^\(cargo .*\)/\1/p' README.md | sed 's/ *#.*//' | head -2)
[[ ${commands[0]} = "cargo run "*" serve "* && ${commands[1]} = "cargo test "* ]]
read -ra serve <<< "${commands[0]}"
read -ra test <<< "${commands[1]}"

step serve "${serve[@]}"
step "${test[@]}" --no-run
step "${test[@]}"
echo "== both commands passed"
