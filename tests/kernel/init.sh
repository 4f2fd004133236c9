#!/bin/sh
# The first process of the emulated machine of `boot.sh`.
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t securityfs none /sys/kernel/security
ip link set lo up
failures=0

# Reports a step by its exit status.
step() {
    if [ "$1" = 0 ]; then echo "  passed: $2"; else echo "  FAILED: $2"; failures=$((failures + 1)); false; fi
}
count() { awk -v name="$1" '$1 == name { print $2 }' /proc/net/tls_stat; }
start() {
    tenfold serve /site --listen 127.0.0.1:8443 --tls-certificate /etc/cert.pem --tls-key /etc/key.pem \
        --control off -v "$@" > /tmp/server 2>&1 &
    server=$!
    curl -sk --retry 9 --retry-delay 1 --retry-connrefused -o /dev/null "$url/" || cat /tmp/server
}
# Waits until the client has printed a word.
comes() { for _ in $(seq 60); do sleep 1; grep -q "$1" /tmp/update && return; done; }
stop() { kill "$server"; wait "$server"; }
hash() { sha256sum | cut -d ' ' -f 1; }
url=https://127.0.0.1:8443
modern="--tls-preset modern --tls-kernel on"

echo "kernel $(uname -r); security modules: $(cat /sys/kernel/security/lsm)"
dd if=/dev/urandom of=/site/64m bs=1M count=64 2> /dev/null
whole=$(hash < /site/64m)
part=$(tail -c +1000001 /site/64m | head -c 2000000 | hash)

echo "without the module:"
tenfold serve /site --listen 127.0.0.1:8443 --tls-certificate /etc/cert.pem --tls-key /etc/key.pem --tls-kernel on \
    --control off > /tmp/refused 2>&1
grep -q 'tls-kernel on needs TLS in the kernel (CONFIG_TLS), which refuses: TCP_ULP "tls": ' /tmp/refused
step $? "tls-kernel on is refused: $(cat /tmp/refused)"
mv /modules /lib/modules
modprobe tls

all=epoll/sendfile,naive/sendfile,fork/sendfile,thread/sendfile,pool/sendfile,busy/sendfile,select/sendfile,poll/sendfile
all=$all,libevent/sendfile,asio/sendfile,asio-proactor/sendfile,epoll/splice,epoll/mmap,epoll/auto,epoll/copy
all=$all,asio-proactor/mmap,asio-proactor/copy,naive/splice,naive/mmap
# The kernel passes `only` on from its command line.
for how in $(echo "${only:-$all}" | tr , ' '); do
    echo "$how:"
    # shellcheck disable=SC2086
    start $modern --engine "${how%/*}" --send "${how#*/}"
    sealed=$(count TlsTxSw)
    [ "$(curl -sk "$url/64m" | hash)" = "$whole" ]; step $? "64 MiB arrive whole"
    [ "$(curl -sk -r 1000000-2999999 "$url/64m" | hash)" = "$part" ]; step $? "a range arrives"
    [ "$(curl -sk --limit-rate 20M -H 'Connection: close' "$url/64m" | hash)" = "$whole" ]
    step $? "64 MiB arrive whole at a slow reader, with a close behind them"
    [ "$(curl -sk "$url/" "$url/" "$url/" | grep -c 'A small page')" = 3 ]; step $? "a connection has several responses"
    for cipher in TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256; do
        [ "$(curl -sk --tls13-ciphers $cipher -r 1000000-2999999 "$url/64m" | hash)" = "$part" ]; step $? "$cipher"
    done
    : > /tmp/update
    { printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'; comes 'A small page'; echo K; comes '>>> .*KeyUpdate'
      printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'; comes 'close_notify'; } |
        openssl s_client -connect 127.0.0.1:8443 -msg > /tmp/update 2>&1
    [ "$(grep -c 'A small page' /tmp/update)" = 2 ]; step $? "requests are answered before and behind a KeyUpdate" || tail -n 20 /tmp/update
    [ "$(grep -c '^Connection: close' /tmp/update)" = 1 ] && grep -q '<<< .*Alert.*close_notify' /tmp/update
    step $? "the connection ends in order behind it, because this kernel cannot change keys"
    [ $(($(count TlsTxSw) - sealed)) = 8 ]; step $? "the kernel sealed all of these connections (TlsTxSw)"
    stop
done

echo "a file that is cut while it is sent:"
cp /site/64m /site/cut
# shellcheck disable=SC2086
start $modern --send sendfile
(sleep 2; truncate -s 1000000 /site/cut) &
curl -sk --limit-rate 5M -o /dev/null "$url/cut"
step $((! $?)) "the response does not look complete"
stop

echo "tls-kernel auto, with the start block:"
start --tls-kernel auto
grep -E 'records|sandbox|files ' -A 1 /tmp/server
grep -q 'to their roots and the log' /tmp/server; step $? "Landlock limits files"
sealed=$(count TlsTxSw)
[ "$(curl -sk --tls-max 1.2 "$url/64m" | hash)" = "$whole" ] && [ "$(count TlsTxSw)" = "$sealed" ]
step $? "workers encrypt TLS 1.2"
[ "$(curl -sk "$url/64m" | hash)" = "$whole" ] && [ "$(count TlsTxSw)" = $((sealed + 1)) ]
step $? "the kernel encrypts TLS 1.3"
stop
start --tls-kernel auto --engine uring
grep -A 1 records /tmp/server
[ "$(curl -sk "$url/64m" | hash)" = "$whole" ] && [ "$(count TlsTxSw)" = $((sealed + 1)) ]
step $? "workers of uring encrypt themselves"
stop
cat /proc/net/tls_stat
[ "$failures" = 0 ] && echo "everything passed"
poweroff -f
