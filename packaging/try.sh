#!/bin/sh
# Serves files by each engine of a program, and compares the bytes that wget receives. An engine that cannot run here is
# named with its reason. Runs in any shell, also in busybox.
#
#     sh packaging/try.sh PROGRAM
set -eu

program=$1
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; rm -rf "$folder"' EXIT
mkdir "$folder/site"
chmod 755 "$folder"
head -c 300000 /dev/urandom > "$folder/site/page.bin"

"$program" --version
served=
for engine in naive fork thread pool busy select poll epoll libevent asio asio-proactor uring; do
    "$program" serve "$folder/site" --listen 127.0.0.1:0 --engine "$engine" --control off > "$folder/out" 2>&1 &
    server=$!
    address=
    for _ in $(seq 300); do
        address=$(sed -n 's|.*\(http://127\.0\.0\.1:[0-9]*\).*|\1|p' "$folder/out" | head -n 1)
        [ -z "$address" ] && kill -0 "$server" 2> /dev/null || break
        sleep 0.1
    done
    if [ -z "$address" ]; then
        echo "$engine cannot run here: $(tail -n 1 "$folder/out")"
        wait "$server" || true
        server=
        continue
    fi
    rm -f "$folder/received"
    timeout 20 wget -q -O "$folder/received" "$address/page.bin"
    cmp "$folder/site/page.bin" "$folder/received"
    kill "$server"
    wait "$server" || { cat "$folder/out"; exit 1; }
    server=
    served="$served $engine"
done
echo "300,000 bytes served by:$served"
[ -n "$served" ]
