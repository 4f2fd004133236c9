#!/usr/bin/env bash
# Runs `tenfold bench --on` and `tenfold lab run --server` over OpenSSH between network namespaces, each with its own
# sshd: two and four machines, and each failure of a start. Needs root, iproute2 and OpenSSH (client and server). The programs run as an ordinary user, who
# exists for the time of the test.
#
#     sudo tests/machines/run.sh target/release/tenfold
set -euo pipefail

[ "$(id -u)" = 0 ] || { echo "$0: only root can make network namespaces" >&2; exit 1; }
[ -x "${1:-}" ] || { echo "usage: $0 PROGRAM, such as target/release/tenfold" >&2; exit 2; }
for tool in ip sshd ssh-keygen ssh useradd; do
    PATH=$PATH:/usr/sbin command -v "$tool" >/dev/null || { echo "$0: $tool is missing: install iproute2 and openssh" >&2; exit 1; }
done

user=tenfold-machines
prefix=tenfoldm
folder=$(mktemp -d)
chmod 755 "$folder"
home=$folder/home
declare -a children=()

end() {
    local child
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    for name in srv ctl 1 2 3 4; do ip netns del "$prefix-$name" 2>/dev/null || true; done
    ip link del "$prefix" 2>/dev/null || true
    pkill -KILL -u "$user" 2>/dev/null || true
    userdel "$user" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT

failures=0
expect() {
    local name=$1 wanted=$2 code=$3 text=$4
    shift 4
    local said=1 word
    for word in "$@"; do grep -qF -- "$word" <<<"$text" || said=0; done
    if [ "$code" = "$wanted" ] && [ "$said" = 1 ]; then
        echo "ok      $name"
    else
        failures=$((failures + 1))
        printf 'FAILED  %s: code %s instead of %s, or one of these is missing: %s\n%s\n' "$name" "$code" "$wanted" "$*" "$text"
    fi
}

# Runs a command as the user on a machine.
as_user() {
    local machine=$1
    shift
    ip netns exec "$prefix-$machine" setpriv --reuid="$user" --regid="$user" --init-groups \
        env -i HOME="$home" PATH="$folder/bin:/usr/bin:/bin" TERM=dumb "$@"
}

# Whether no process of the user is left but its server.
gone() {
    local until=$((SECONDS + ${1:-15}))
    while pgrep -u "$user" -f 'tenfold agent' >/dev/null; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.2
    done
}

# --- machines ---
mkdir -p "$folder/bin" "$folder/other" "$home/.ssh" /run/sshd
cp "$1" "$folder/bin/tenfold"
useradd --home-dir "$home" --no-create-home --shell /bin/bash "$user"
usermod -p '*' "$user"
ip link add "$prefix" type bridge
ip link set "$prefix" up
machine() {
    local name=$1 number=$2
    ip netns add "$prefix-$name"
    ip link add "$prefix$name" type veth peer name eth0 netns "$prefix-$name"
    ip link set "$prefix$name" master "$prefix" up
    ip -n "$prefix-$name" addr add "10.77.0.$number/24" dev eth0
    ip -n "$prefix-$name" link set eth0 up
    ip -n "$prefix-$name" link set lo up
}
machine srv 100
machine ctl 99
for number in 1 2 3 4; do machine "$number" "$number"; done

ssh-keygen -q -t ed25519 -N '' -f "$home/.ssh/id"
ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
ssh-keygen -q -t ed25519 -N '' -f "$folder/stranger"
cp "$home/.ssh/id.pub" "$home/.ssh/authorized_keys"
# A sshd on a machine: PORT, PATH of its users, and a file of keys.
sshd() {
    local name=$1 port=$2 path=$3 keys=$4
    cat >"$folder/sshd-$name-$port" <<CONF
Port $port
HostKey $folder/host
AuthorizedKeysFile $keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PrintMotd no
MaxStartups 100
SetEnv PATH=$path
CONF
    ip netns exec "$prefix-$name" /usr/sbin/sshd -D -e -f "$folder/sshd-$name-$port" 2>>"$folder/sshd.log" &
    children+=($!)
}
with="$folder/bin:/usr/bin:/bin"
for number in 1 2 3 4; do sshd "$number" 22 "$with" "$home/.ssh/authorized_keys"; done
sshd 1 23 "/usr/bin:/bin" "$home/.ssh/authorized_keys"
sshd 1 24 "$with" "$folder/nobody"
sshd 1 25 "$folder/other:/usr/bin:/bin" "$home/.ssh/authorized_keys"
# A program of another architecture, and a uname that says the same.
head -c 20 "$folder/bin/tenfold" >"$folder/other/tenfold"
printf '\xb7\x00' | dd of="$folder/other/tenfold" bs=1 seek=18 conv=notrunc status=none
head -c 4000 /dev/zero >>"$folder/other/tenfold"
printf '#!/bin/sh\necho s390x\n' >"$folder/other/uname"
chmod 755 "$folder/other/"*
{
    for number in 1 2 3 4; do printf 'Host m%s\n    HostName 10.77.0.%s\n' "$number" "$number"; done
    printf 'Host bare\n    HostName 10.77.0.1\n    Port 23\n'
    printf 'Host locked\n    HostName 10.77.0.1\n    Port 24\n'
    printf 'Host foreign\n    HostName 10.77.0.1\n    Port 25\n'
    printf 'Host changed\n    HostName 10.77.0.1\n    HostKeyAlias changed\n'
    printf 'Host *\n    IdentityFile %s\n    IdentitiesOnly yes\n    ConnectTimeout 5\n' "$home/.ssh/id"
} >"$home/.ssh/config"
{
    for number in 1 2 3 4; do echo "10.77.0.$number $(cut -d' ' -f1,2 "$folder/host.pub")"; done
    for port in 23 24 25; do echo "[10.77.0.1]:$port $(cut -d' ' -f1,2 "$folder/host.pub")"; done
    echo "changed $(cut -d' ' -f1,2 "$folder/stranger.pub")"
} >"$home/.ssh/known_hosts"
chown -R "$user:$user" "$home"
chmod 700 "$home/.ssh"
chmod 600 "$home/.ssh/"*

mkdir "$folder/site"
head -c 1000 /dev/urandom >"$folder/site/file"
chmod 644 "$folder/site/file"
as_user srv tenfold serve "$folder/site" --listen 10.77.0.100:8080 --admin 10.77.0.100:9000 >"$folder/server.log" 2>&1 &
children+=($!)
url=http://10.77.0.100:8080/file
for _ in $(seq 100); do
    ip netns exec "$prefix-ctl" curl -fsS -o /dev/null "$url" 2>/dev/null && break
    sleep 0.1
done

requests() { ip netns exec "$prefix-ctl" curl -fsS "http://10.77.0.100:9000/metrics" | awk '/^tenfold_requests_total/ { sum += $2 } END { print sum + 0 }'; }
bench() { as_user ctl timeout 60 tenfold bench "$@" 2>&1; }

# --- end to end ---
for machines in 2 4; do
    on=()
    for number in $(seq "$machines"); do on+=(--on "m$number"); done
    before=$(requests)
    code=0
    text=$(bench --json -d 2 -c 16 "${on[@]}" "$url") || code=$?
    after=$(requests)
    # Other programs of the machine of this test may make a run invalid.
    report=$(sed -n '/^{/,/^}/p' <<<"$text")
    counted=$(python3 -c '
import json, sys
run = json.load(sys.stdin)["runs"][0]
assert len(run["agents"]) == int(sys.argv[1]) and all(row["answers"] > 0 and row["lost"] is None for row in run["agents"])
print(sum(run["statuses"].values()) + run["unfinished"])' "$machines" <<<"$report" 2>&1) || true
    [ "$code" = 0 ] || ! grep -v 'other programs run' <<<"$text" | grep -q 'invalid: ' && code=0
    expect "$machines machines: $counted requests, and the server counts $((after - before))" 0 "$code" "$counted" "$((after - before))"
    gone 5 || expect "$machines machines leave nothing" 0 1 "$(pgrep -a -u "$user")"
done

# --- starts that fail: one line with a remedy ---
refused() {
    local name=$1
    shift
    local code=0 text
    text=$(bench -n 10 --on m2 "${options[@]}" "$url") || code=$?
    [ "$(wc -l <<<"$text")" = 1 ] || code="several lines"
    expect "$name" 1 "$code" "$text" "$@"
}
options=(--on changed); refused "a wrong host key" "Host key verification failed" 'accept it once with `ssh changed`'
options=(--on bare); refused "a missing program" "command not found" "or add --on-copy"
options=(--on locked); refused "a refused login" "Permission denied (publickey)" 'ssh-copy-id locked'
options=(--on foreign); refused "another architecture" "xec format error" "install tenfold for it"
code=0
text=$(bench -n 10 --on foreign --on-copy "$url") || code=$?
expect "a copy for another architecture" 1 "$code" "$text" "foreign has the architecture s390x, and this program is for"
code=0
text=$(bench -n 100 -c 4 --on bare --on m2 --on-copy "$url") || code=$?
[ "$code" = 4 ] && code=0
expect "a copy" 0 "$code" "$text" "100 responses OK"
expect "a copy is removed" 0 0 "$(ls /tmp/tenfold.?????? 2>/dev/null | wc -l)" 0

# --- the laboratory: a server and a client, over a link of 1 Gb/s ---
ip netns exec "$prefix-1" tc qdisc add dev eth0 root tbf rate 1gbit burst 256k latency 10ms
for clients in "m2" "m2 m3 m4"; do
    load=()
    for client in $clients; do load+=(--client "$client"); done
    code=0
    text=$(as_user ctl timeout 300 tenfold lab run --profile smoke --budget 60s --only n16-send --peers none \
        --server m1=10.77.0.1 "${load[@]}" --output "$home/lab-${#load[@]}" 2>&1) || code=$?
    expect "the laboratory over a slow link, clients $clients" 0 "$code" "$text" \
        "HOLDS             n16-send: Above 128 KB the network is the limit" "the link from m1 to ${clients##* } has"
done
ip netns exec "$prefix-1" tc qdisc del dev eth0 root
code=0
text=$(as_user ctl timeout 120 tenfold lab doctor --server m1=10.77.0.1 --client m2 2>&1) || code=$?
expect "the doctor of two machines" 0 "$code" "$text" "m1" "m2" "MTU"
gone 5 || expect "the laboratory leaves nothing" 0 1 "$(pgrep -a -u "$user")"

# --- a lost network ---
as_user ctl timeout 60 tenfold bench -d 30 -c 8 --on m1 --on m2 "$url" >"$folder/lost" 2>&1 &
running=$!
sleep 4
begin=$SECONDS
ip link set "${prefix}1" down
code=0
wait "$running" || code=$?
expect "a lost network" 4 "$code" "$(cat "$folder/lost")" "m1: it has not answered for 5 s" "LOST"
[ $((SECONDS - begin)) -le 10 ] || expect "a lost network ends the run in time" 0 1 "$((SECONDS - begin)) s"
gone 20 || expect "a lost network leaves nothing" 0 1 "$(pgrep -a -u "$user")"
ip link set "${prefix}1" up

[ "$failures" = 0 ] || { echo "$failures failed" >&2; exit 1; }
echo "all passed"
