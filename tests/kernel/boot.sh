#!/bin/sh
# Boots a Debian kernel in an emulator, and tries the facilities there that the kernel of this machine may lack: TLS in
# the kernel, and Landlock. `init.sh` has the steps; the console shows their results, and the exit status is 0 if all
# passed. Packages: qemu-system-x86 linux-image-cloud-amd64 busybox-static cpio kmod curl openssl.
#
# usage: tests/kernel/boot.sh [TENFOLD [VERSION [ENGINE/SENDER,...]]]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../target/debug/tenfold}
version=${2:-$(ls /boot | sed -n 's/^vmlinuz-//p' | sort -V | tail -n 1)}
[ -n "$version" ] || { echo "there is no kernel in /boot: install linux-image-cloud-amd64" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root
mkdir -p "$root/bin" "$root/etc" "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/site" "$root/modules"

# A program, and the libraries that it loads.
add() {
    cp "$1" "$root/bin/$2"
    ldd "$1" | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -Ln "$library" "$root$library"
    done
}
add "$program" tenfold
strip "$root/bin/tenfold"
add "$(command -v curl)" curl
add "$(command -v openssl)" openssl
cp "$(command -v busybox)" "$root/bin/busybox"
"$root/bin/busybox" --list | while read -r name; do [ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"; done

# The kernel loads the modules of ciphers itself, by modprobe. `init.sh` moves the folder to its place.
modules=$root/modules/$version
mkdir -p "$root/sbin"
ln -s ../bin/busybox "$root/sbin/modprobe"
for folder_of_modules in crypto lib/crypto arch/x86/crypto net/tls; do
    mkdir -p "$modules/kernel/$(dirname "$folder_of_modules")"
    cp -r "/lib/modules/$version/kernel/$folder_of_modules" "$modules/kernel/$folder_of_modules"
done
cp "/lib/modules/$version/modules.alias" "/lib/modules/$version/modules.dep" "$modules"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$root/etc/key.pem" -out "$root/etc/cert.pem" 2> "$folder/openssl"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' > "$root/etc/group"
printf 'A small page.\n' > "$root/site/index.html"
cp "$here/init.sh" "$root/init"
chmod 755 "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc) > "$folder/initrd"

qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 2048 -nographic -nic none -no-reboot -kernel "/boot/vmlinuz-$version" \
    -initrd "$folder/initrd" -append "console=ttyS0 quiet panic=-1 ${3:+only=$3}" < /dev/null | tee "$folder/console"
grep -q '^everything passed' "$folder/console"
