#!/bin/bash
# Runs a command as process 1 of the Debian in folder $1, with an empty environment: `FOLDER [NAME=VALUE…] COMMAND…`. Started
# by `unshare --mount --pid --uts --ipc --cgroup --fork --kill-child`, with `--net` for a network of its own.
set -e
folder=$1
shift
mount --make-rprivate /
mount --bind "$folder" "$folder"
cd "$folder"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
mount -t tmpfs tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mkdir -p old
pivot_root . old
umount -l /old
# systemd hands credentials to a unit by a mount that must reach it.
mount --make-rshared /
exec env -i "$@" </dev/null
