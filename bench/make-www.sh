#!/bin/sh
# Makes www/: the files for measurements, with fixed sizes and random content.
# Files with the right size stay, so that caches and validators survive a second call.
set -eu
cd "$(dirname "$0")"
mkdir -p www

# file NAME BYTES
file() {
    if [ "$(stat -c %s "www/$1" 2>/dev/null || echo none)" != "$2" ]; then
        head -c "$2" /dev/urandom | base64 -w0 | head -c "$2" >"www/$1.part"
        mv "www/$1.part" "www/$1"
    fi
}

file 1k.html 1024
file 4k.bin 4096
file 16k.bin 16384
file 24k.bin 24576
file 32k.bin 32768
file 48k.bin 49152
file 64k.bin 65536
file 128k.bin 131072
file test.jpg 2496629
file video.mp4 69206016
cmp -s www/1k.html www/index.html || cp www/1k.html www/index.html
chmod -R a+rX www
