#!/usr/bin/env bash
# Runs the two commands of README as an ordinary user in a new Debian with only Rust, gcc and git, without a network.
# Needs root, Rust, git, mmdebstrap and about 12 GB; takes as long as two builds of the server and the tests.
#
#     sudo env PATH="$PATH" tests/fresh/run.sh
#
# It tests the last commit, with the toolchain and the cargo registry of this machine, mounted read-only.
set -euo pipefail

here=$(dirname "$(realpath "$0")")

# Mounts what the root needs, and makes it the root of this mount namespace.
enter() {
    local root=$1 sysroot=$2 registry=$3
    ip link set lo up
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    mount --bind -o ro "$sysroot" opt/rust
    # Not the folder src, whose files have the modes of their archives: some are closed to other users.
    for part in cache index; do
        mount --bind -o ro "$registry/$part" "home/newcomer/.cargo/registry/$part"
    done
    pivot_root . mnt
    umount --lazy mnt
    exec chroot . /usr/bin/setpriv --reuid=newcomer --regid=newcomer --init-groups \
        /usr/bin/env -i HOME=/home/newcomer PATH=/opt/rust/bin:/usr/bin:/bin CARGO_NET_OFFLINE=true \
        /bin/bash /inside.sh
}

if [ "${1:-}" = enter ]; then
    shift
    enter "$@"
fi

[ "$(id -u)" = 0 ] || { echo "$0: only root can mount and enter a root: sudo env PATH=\"\$PATH\" $0" >&2; exit 1; }
cd "$here/../.."
sysroot=$(rustc --print sysroot)
registry=$(realpath "${CARGO_HOME:-$HOME/.cargo}")/registry
[ -x "$sysroot/bin/cargo" ] || { echo "$0: $sysroot has no cargo: install Rust by rustup" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
root=$folder/root

echo "== a Debian with gcc"
begin=$SECONDS
cargo fetch --quiet --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
mmdebstrap --quiet --variant=minbase --include=gcc,libc6-dev,git bookworm "$root"
chroot "$root" useradd --create-home --shell /bin/bash newcomer
mkdir -p "$root/opt/rust" "$root/home/newcomer/.cargo/registry/"{cache,index}
git bundle create --quiet "$root/tenfold.bundle" HEAD
cp "$here/inside.sh" "$root/inside.sh"
chroot "$root" chown -R newcomer: /home/newcomer
echo "== done in $((SECONDS - begin)) s"

unshare --mount --net --pid --fork --kill-child bash "$0" enter "$root" "$sysroot" "$registry"
