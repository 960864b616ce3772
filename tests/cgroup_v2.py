#!/usr/bin/env python3
"""What cx takes from control groups of version 2, in a virtual machine whose only hierarchy is that one.

usage: tests/cgroup_v2.py CX

Boots a Debian kernel in QEMU, without acceleration, and with nothing but busybox and the program `CX`. Needs the packages
qemu-system-x86 and busybox-static; the kernel is the one of linux-image-cloud-amd64, which is only unpacked.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
BOOT_SECONDS = 900
# Each script holds 96 MiB for a while. Forty of them at once need four times what the group may use.
RUNS = 40
SCRIPT = "const a = new Uint8Array(96 << 20).fill(1); await new Promise((go) => setTimeout(go, 300)); return a[7]"

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec </dev/null >/dev/ttyS0 2>/tmp/errors
stty -onlcr -echo < /dev/ttyS0
export HOME=/tmp PATH=/bin NO_COLOR=1
groups=/sys/fs/cgroup
for group in "" /outer; do
  mkdir -p $groups$group/outer $groups/outer/inner
  echo "+memory +cpu +pids" > $groups$group/cgroup.subtree_control
done 2>/dev/null
mkdir -p $groups/outer/inner
inside() { sh -c 'echo $$ > /sys/fs/cgroup/outer/inner/cgroup.procs; exec "$@"' sh "$@"; }
report() { echo; echo "REPORT $1 $(inside cx doctor --json | tr -d '\n')"; }

report unlimited
echo 1073741824 > $groups/outer/inner/memory.max; report own_memory
echo max > $groups/outer/inner/memory.max
echo 1073741824 > $groups/outer/memory.max; report outer_memory
echo "100000 100000" > $groups/outer/inner/cpu.max; report own_cpu
echo "max 100000" > $groups/outer/inner/cpu.max
echo "150000 100000" > $groups/outer/cpu.max; report outer_cpu

# Forty scripts at once, in a container of 1 GiB.
(cat /requests; sleep 240 & echo $! > /tmp/sleep; wait) | inside cx serve --queue-timeout 300s > /tmp/answers &
while [ $(grep -c '"id":1[0-9][0-9][,}]' /tmp/answers) -lt @RUNS@ ] && kill -0 $! 2>/dev/null; do
  waited=$((waited + 1)); [ "$waited" -lt 200 ] || break; sleep 1
done
echo; echo "REPORT events $(tr '\n' ' ' < $groups/outer/memory.events)"
echo "REPORT peak $(cat $groups/outer/memory.peak)"
echo "REPORT good $(grep -c '"id":1[0-9][0-9].*"isError":false' /tmp/answers)"
grep '"id":1[0-9][0-9]' /tmp/answers | grep -v '"isError":false' | head -3

# Worker processes: the outer group is delegated to a user, and cx is in the inner one. The kernel kills a worker when its
# limit is lowered below what it has.
mkdir -p /etc /tmp/user; echo 'cx:x:1000:1000::/tmp/user:/bin/sh' > /etc/passwd
chown 1000 /tmp/user $groups/outer $groups/outer/inner $groups/outer/cgroup.procs $groups/outer/cgroup.subtree_control \
  $groups/outer/inner/cgroup.procs
export HOME=/tmp/user
report shared_by_root
as_user() { inside su cx -c "HOME=/tmp/user exec $*"; }
echo; echo "REPORT delegated $(as_user cx doctor --json | tr -d '\n')"
echo 'await new Promise((go) => setTimeout(go, 60_000))' > /tmp/user/wait.ts
as_user cx run --isolation process --timeout 100s --json /tmp/user/wait.ts > /tmp/lost &
for second in $(seq 60); do
  group=$(grep -lv max $groups/outer/cx-worker-*/memory.max 2>/dev/null | head -1)
  [ -z "$group" ] || break; sleep 1
done
sleep 2; group=${group%/memory.max}
echo; echo "REPORT group $(cat $group/memory.max $group/memory.swap.max $group/pids.max $group/pids.current | tr '\n' ' ')"
echo 1048576 > $group/memory.max; wait $!
echo; echo "REPORT lost $(tr -d '\n' < /tmp/lost)"
for language in ts py; do
  echo 'return 1' > /tmp/user/short.$language
  as_user cx run --isolation process --json /tmp/user/short.$language > /tmp/short
  echo; echo "REPORT short_$language $(tr -d '\n' < /tmp/short)"
done
echo "REPORT left $(ls -d $groups/outer/cx-worker-* 2>/dev/null | wc -l)"
tail -n 5 /tmp/errors
echo "REPORT end"
poweroff -f
"""


def requests():
    yield {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                       "clientInfo": {"name": "test", "version": "1"}}}
    yield {"method": "notifications/initialized"}
    for run in range(RUNS):
        yield {"id": 100 + run, "method": "tools/call",
               "params": {"name": "executeTypescript", "arguments": {"code": SCRIPT, "timeoutMs": 60_000}}}


def kernel(directory):
    """The kernel's file, out of the package that Debian's newest kernel for virtual machines is in."""
    depends = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], check=True, capture_output=True, text=True)
    name = re.search(r"Depends: (linux-image-\S+)", depends.stdout).group(1)
    subprocess.run(["apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", name], check=True, cwd=directory, stdout=subprocess.DEVNULL)
    package = next(directory.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, directory / "kernel"], check=True)
    return next((directory / "kernel/boot").glob("vmlinuz-*"))


def image(directory, program):
    """The first file system: busybox, the program with its libraries, and what is done."""
    root = directory / "root"
    for name in ("bin", "proc", "sys", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    subprocess.run(["strip", "-o", root / "bin/cx", program], check=True)
    libraries = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for path in re.findall(r"(/\S+) \(0x", libraries):
        copy = root / path.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    (root / "requests").write_text("".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in requests()))
    (root / "init").write_text(INIT.replace("@RUNS@", str(RUNS)))
    (root / "init").chmod(0o755)
    archive = directory / "image"
    with archive.open("wb") as file:
        names = subprocess.run(["find", "."], check=True, cwd=root, capture_output=True)
        subprocess.run(["/bin/busybox", "cpio", "-o", "-H", "newc"], check=True, cwd=root, input=names.stdout,
                       stdout=file, stderr=subprocess.DEVNULL)
    return archive


def boot(directory, program):
    """What the machine reports, by name."""
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "4096", "-smp", "2", "-nographic",
               "-no-reboot", "-kernel", kernel(directory), "-initrd", image(directory, program),
               "-append", "console=ttyS0 quiet panic=-1"]
    machine = subprocess.run(command, capture_output=True, timeout=BOOT_SECONDS, stdin=subprocess.DEVNULL)
    said = machine.stdout.decode(errors="replace").replace("\r", "\n")
    reports = dict(re.findall(r"^REPORT (\w+) ?(.*)$", said, re.MULTILINE))
    if "end" not in reports:
        sys.exit(f"the machine did not come to its end:\n{said[-3000:]}\n{machine.stderr.decode()[-1000:]}")
    return reports, said


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        reports, said = boot(pathlib.Path(directory), program)
    found = {}
    for name in ("unlimited", "own_memory", "outer_memory", "own_cpu", "outer_cpu"):
        checks = {check["name"]: check.get("details", {}) for check in json.loads(reports[name])["checks"]}
        memory = checks["memory"]
        found[name] = (memory["source"], memory["totalBytes"] // MIB, checks["processors"]["processors"])
        print(name, *found[name])
    for name in ("events", "peak", "good"):
        print(name, reports[name])
    source, total, processors = found["unlimited"]
    assert source != "cgroup" and total > 1_500 and processors == 2
    assert found["own_memory"] == found["outer_memory"] == ("cgroup", 512, 2)
    assert found["own_cpu"] == found["outer_cpu"] == ("cgroup", 512, 1)
    assert " oom_kill 0 " in f" {reports['events']} ", said[-3000:]
    assert int(reports["good"]) == RUNS, said[-3000:]
    checks = {name: {check["name"]: check.get("details", {}) for check in json.loads(reports[name])["checks"]}
              for name in ("shared_by_root", "delegated")}
    for name, expected in (("shared_by_root", False), ("delegated", True)):
        assert checks[name]["control groups, version 2"]["forWorkers"] is expected, name
    memory, swap, threads, current = map(int, reports["group"].split())
    print("group", memory // MIB, swap, threads, current)
    # Twice the limit of 128 MiB, twice 128 MiB beyond that, and what a warm worker has.
    assert 512 * MIB < memory < 768 * MIB and swap == 0 and current < threads < 100
    lost = json.loads(reports["lost"])
    print("lost", lost["error"]["code"], lost["error"]["message"])
    assert lost["error"]["code"] == "MEMORY_LIMIT"
    for language in ("ts", "py"):
        assert json.loads(reports[f"short_{language}"])["success"] is True, reports
    # The last executor's; those of the others before it are gone.
    assert int(reports["left"]) <= 2, "groups of workers are left"
    print(f"well: {RUNS} scripts at once, none was killed")


main()
