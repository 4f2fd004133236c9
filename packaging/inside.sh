#!/bin/sh
# The part of test.sh that runs inside. Each line of output is a fact that was tested.
set -eu

say() { echo "$*"; }
fail() {
    echo "FAILED: $*"
    systemctl status 'tenfold*' --all --no-pager --lines=30 || true
    exit 1
}
page() { curl --silent --fail --max-time 10 "http://127.0.0.1${1:-/}"; }
install() { DEBIAN_FRONTEND=noninteractive dpkg --force-confold --install /tenfold.deb > /dev/null; }

find / -xdev \( -path /proc -o -path /var/cache/apt -o -path /var/log -o -path /run -o -path /tmp \) -prune -o -print \
    | sort > /before

install
systemctl is-active --quiet tenfold.service || fail "it does not run"
systemctl is-enabled --quiet tenfold.service tenfold.socket || fail "it is not enabled"
page | grep -q 'Tenfold serves this page' || fail "no page"
say "installed, started and asked: $(tenfold --version)"

[ "$(ps -o user= -p "$(systemctl show -p MainPID --value tenfold.service)")" = tenfold ] || fail "it is another user"
[ -z "$(ps -eo user=,comm= | grep '^root.*tenfold' || true)" ] || fail "a process of it is root"
systemctl show -p StatusText --value tenfold.service | grep -q '^serving \[::\]:80 ' || fail "no status"
tenfold status --control /run/tenfold/control | grep -q serving || fail "tenfold status does not find it"
say "runs as tenfold: $(systemctl show -p StatusText --value tenfold.service)"
[ -s /var/log/tenfold/access.log ] || { sleep 2; [ -s /var/log/tenfold/access.log ] || fail "no log"; }
if journalctl --unit tenfold.service --priority warning --output cat | grep .; then fail "it warned"; fi
say "logs to its file, and warns of nothing"

echo 'nonsense = 1' >> /etc/tenfold/tenfold.toml
systemctl reload tenfold.service
sleep 1
systemctl show -p StatusText --value tenfold.service | grep -q 'old configuration stays in use' || fail "a wrong file counts"
sed -i '$d' /etc/tenfold/tenfold.toml
echo '# changed here' >> /etc/tenfold/tenfold.toml
systemctl reload tenfold.service
sleep 1
systemctl show -p StatusText --value tenfold.service | grep -q 'generation 2' || fail "a right file does not count"
say "reloads, and keeps the old configuration if the new one is wrong"

# One file more than log-keep keeps.
rotated() {
    for day in $(seq 10 24); do install_rotated "$1-$day"; done
    systemctl restart "$2"; sleep 2
    [ ! -e "/var/log/tenfold/access.log.$1-10" ] && [ -e "/var/log/tenfold/access.log.$1-24" ]
}
install_rotated() {
    echo "a line" > "/var/log/tenfold/access.log.$1"
    chown tenfold:tenfold "/var/log/tenfold/access.log.$1"
}
rotated 2026-01 tenfold.service || fail "the oldest rotated log is not removed"
say "removes the oldest rotated log"

# A connection for each request, while the package is installed over itself.
( failed=0; asked=0
  while [ ! -e /stop ]; do
      page /index.html > /dev/null || failed=$((failed + 1)); asked=$((asked + 1))
  done
  echo "$asked $failed" > /asked ) &
load=$!
before=$(systemctl show -p MainPID --value tenfold.service)
sleep 1
install
sleep 1
touch /stop
wait "$load"
read -r asked failed < /asked
[ "$before" = "$(systemctl show -p MainPID --value tenfold.service)" ] || fail "the upgrade restarted it"
tenfold status --json --control /run/tenfold/control | tr -d ' \n' | grep -q '"upgrades":{"succeeded":1,"failed":0,' \
    || fail "no upgrade is counted"
[ "$failed" = 0 ] || fail "$failed of $asked requests failed during the upgrade"
grep -q '# changed here' /etc/tenfold/tenfold.toml || fail "the upgrade replaced the configuration"
say "upgraded with $asked requests meanwhile, all answered; the changed configuration stayed"

# A running program cannot change its engine.
sed -i 's/^root = /engine = "poll"\nroot = /' /etc/tenfold/tenfold.toml
install 2> /dev/null
[ "$before" != "$(systemctl show -p MainPID --value tenfold.service)" ] || fail "a failed upgrade did not restart it"
page | grep -q 'Tenfold serves this page' || fail "no page after the restart"
sed -i '/^engine = "poll"$/d' /etc/tenfold/tenfold.toml
say "restarted, because the configuration needs it"

systemctl stop tenfold.socket tenfold.service
sed -i 's/^root = /accounts = "sqlite"\nroot = /' /etc/tenfold/tenfold.toml
systemctl start tenfold-root.service || fail "the unit of root does not start"
page | grep -q 'Tenfold serves this page' || fail "no page from the unit of root"
users=$(ps -eo user:20=,comm= | awk '$2 == "tenfold" { print $1 }' | sort -u | tr '\n' ' ')
[ "$users" = "root tenfold tenfold-accounts " ] || fail "its users are $users"
rotated 2026-02 tenfold-root.service || fail "the oldest rotated log is not removed by the unit of root"
if journalctl --unit tenfold-root.service --priority warning --output cat | grep .; then fail "it warned"; fi
systemctl kill --signal USR1 --kill-whom main tenfold-root.service
sleep 1
journalctl --unit tenfold-root.service --output cat | grep -q 'access log was opened again' || fail "USR1 was not reported"
systemctl stop tenfold-root.socket tenfold-root.service
say "tenfold-root.service: $users"

# TLS as the comments of the configuration and of the socket say, with a key that root alone can read.
cd /etc/tenfold
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem 2> /dev/null || fail "no certificate"
[ "$(stat --format '%U %a' key.pem)" = 'root 600' ] || fail "others can read the key"
sed -i -E 's/^# (listen|tls-certificate|tls-key) = /\1 = /' tenfold.toml
mkdir /etc/systemd/system/tenfold-root.socket.d
printf '[Socket]\nListenStream=443\n' > /etc/systemd/system/tenfold-root.socket.d/tls.conf
systemctl daemon-reload
systemctl start tenfold-root.service || fail "it does not start with TLS"
curl --silent --fail --max-time 10 --cacert certificate.pem https://localhost/ | grep -q 'Tenfold serves this page' \
    || fail "no page by https"
users=$(ps -eo user:20=,comm= | awk '$2 == "tenfold" { print $1 }' | sort -u | tr '\n' ' ')
[ "$users" = "root tenfold tenfold-accounts tenfold-signing " ] || fail "with TLS its users are $users"
if journalctl --unit tenfold-root.service --priority warning --output cat | grep .; then fail "it warned"; fi
systemctl stop tenfold-root.socket tenfold-root.service
rm -r key.pem certificate.pem /etc/systemd/system/tenfold-root.socket.d
cd /
say "serves https: $users"

DEBIAN_FRONTEND=noninteractive dpkg --purge tenfold > /dev/null
getent passwd tenfold tenfold-accounts tenfold-signing && fail "its users are left"
rm -f /stop /asked
find / -xdev \( -path /proc -o -path /var/cache/apt -o -path /var/log -o -path /run -o -path /tmp \) -prune -o -print \
    | sort > /after
comm -13 /before /after | grep tenfold && fail "files are left"
ls /var/log | grep tenfold && fail "logs are left"
say "purged: no file, user or log of it is left"
echo "the package passed"
