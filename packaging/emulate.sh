#!/bin/sh
# Boots Debian's kernel for arm64 in an emulator, and runs try.sh there with a static program: its sandbox and its rings
# need a kernel of their processor. The kernel and busybox are packages of Debian, which are unpacked, not installed.
# Packages: qemu-system-arm cpio; `dpkg --add-architecture arm64`.
#
#     sh packaging/emulate.sh PROGRAM
set -eu

program=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
kernel=$(apt-cache depends linux-image-cloud-arm64:arm64 | sed -n 's/.*Depends: \(linux-image-[^:]*\).*/\1/p' | head -n 1)
[ -n "$kernel" ] || { echo "apt knows no linux-image-cloud-arm64:arm64: dpkg --add-architecture arm64, apt-get update" >&2; exit 1; }
(cd "$folder" && apt-get -q download "$kernel:arm64" busybox-static:arm64 && for file in *.deb; do dpkg -x "$file" .; done)

root=$folder/root
mkdir -p "$root/bin" "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
cp "$program" "$root/bin/tenfold"
cp "$folder/bin/busybox" "$root/bin/busybox"
cp "$here/try.sh" "$root/try.sh"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' > "$root/etc/group"
cat > "$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
ip link set lo up
sh /try.sh /bin/tenfold && echo "the program passed"
poweroff -f
INIT
chmod 755 "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) > "$folder/initrd"

timeout 600 qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on -smp 2 -m 1024 -nographic -nic none -no-reboot \
    -kernel "$folder/boot/vmlinuz-${kernel#linux-image-}" -initrd "$folder/initrd" \
    -append "console=ttyAMA0 quiet panic=-1" < /dev/null | tr -d '\r' | tee "$folder/console"
grep -qx 'the program passed' "$folder/console"
