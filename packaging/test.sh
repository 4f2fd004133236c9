#!/bin/sh
# Boots a Debian of its own and tests a package in it: install, start, request, reload, upgrade under load, purge.
# Needs root, mmdebstrap and systemd-nspawn.
#
#     sh packaging/test.sh target/package/tenfold_VERSION_ARCHITECTURE.deb
set -eu

package=$(realpath "$1")
test=$(dirname "$(realpath "$0")")/inside.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root

needs=$(dpkg-deb --field "$package" Depends | sed 's/([^)]*)//g; s/ //g')
mmdebstrap --quiet --variant=minbase --include="systemd,systemd-sysv,curl,openssl,procps,$needs" bookworm "$root"
cp "$package" "$root/tenfold.deb"
cp "$test" "$root/inside.sh"
cat > "$root/etc/systemd/system/inside.service" <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /inside.sh
StandardOutput=append:/result
StandardError=append:/result
ExecStopPost=/bin/systemctl poweroff --no-block
[Install]
WantedBy=default.target
UNIT
ln -s /etc/systemd/system/inside.service "$root/etc/systemd/system/multi-user.target.wants/inside.service"
# The filter of a container refuses calls that a machine has, and the units are about that.
calls="openat2 seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"
timeout 120 systemd-nspawn --quiet --system-call-filter="$calls" --register=no --keep-unit --private-network --directory="$root" --boot \
    > "$folder/boot" 2>&1 || { tail -20 "$folder/boot"; cat "$root/result"; exit 1; }
cat "$root/result"
# systemctl may report behind it that there is no bus.
grep -qx 'the package passed' "$root/result"
