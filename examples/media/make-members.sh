#!/bin/sh
# Draws the picture and the film of examples/site/members: the edge of the Mandelbrot set, and a fall into it.
#
# Each second of the film begins with a key frame and the index stands in front, so a browser can seek at once.
#
# Needs ffmpeg (Debian package name). Run it from anywhere:
#     sh examples/media/make-members.sh
set -eu
cd "$(dirname "$0")/../site/members"

set_of='mandelbrot=rate=25:maxiter=900:start_x=-0.743643887:start_y=0.131825904:inner=black:end_pts=600'
ffmpeg -v error -y -f lavfi -i "$set_of:size=1280x800:start_scale=0.004:end_scale=0.004" -frames:v 1 \
    -q:v 4 picture.jpg
ffmpeg -v error -y -f lavfi -i "$set_of:size=640x360:start_scale=3:end_scale=0.002" -t 12 \
    -c:v libx264 -preset medium -crf 36 -g 25 -pix_fmt yuv420p -movflags +faststart film.mp4
ffmpeg -v error -y -ss 6 -i film.mp4 -frames:v 1 -q:v 5 film.jpg
