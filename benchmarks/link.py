"""Two or more network namespaces joined by a link with a bandwidth and a latency: for `benchmarks/run distributed`.

    link.py COUNT MBIT MILLISECONDS      makes the namespaces rank0, rank1, ... with the addresses 10.77.0.1, 10.77.0.2, ...,
                                         says "ready", and forwards packets until its standard input ends

What `tc netem` would do in the kernel, done by a process that needs no module of the kernel but `tun`: each namespace
has an interface whose packets wait for their turn on its wire (bytes over bandwidth) and then for the latency.
Needs to be root.
"""

import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

MTU = 32000
MOST_WAITING = 16 << 20  # bytes in the queue of one interface; what comes then is dropped, as a switch does


def interface(namespace, address):
    """Opens a tun interface inside a namespace."""
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    if libc.setns(there, 0) != 0:
        sys.exit(f"cannot enter the namespace {namespace}: {os.strerror(ctypes.get_errno())}")
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"wire", 0x1001))  # TUNSETIFF, IFF_TUN without a header
    libc.setns(home, 0)
    for line in (
        "ip link set lo up",
        f"ip link set dev wire mtu {MTU} txqueuelen 10000 up",
        f"ip address add {address}/24 dev wire",
    ):
        subprocess.run(["ip", "netns", "exec", namespace, *line.split()], check=True)
    return tun


def forward(tuns, bytes_per_second, latency):
    free = [0.0] * len(tuns)  # when the wire of an interface is free again
    waiting, number = [], 0
    held = [0] * len(tuns)
    stdin = sys.stdin.fileno()
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, source, target, packet = heapq.heappop(waiting)
            held[source] -= len(packet)
            try:
                os.write(tuns[target], packet)
            except OSError:
                pass
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 1.0
        readable, _, _ = select.select([*tuns, stdin], [], [], timeout)
        if stdin in readable and not os.read(stdin, 1):
            return
        for source, tun in enumerate(tuns):
            if tun not in readable:
                continue
            for _ in range(16):
                try:
                    packet = os.read(tun, 65536)
                except BlockingIOError:
                    break
                target = packet[19] - 1 if packet[0] >> 4 == 4 else -1
                if not 0 <= target < len(tuns) or held[source] > MOST_WAITING:
                    continue
                free[source] = max(free[source], time.monotonic()) + len(packet) / bytes_per_second
                held[source] += len(packet)
                number += 1
                heapq.heappush(waiting, (free[source] + latency, number, source, target, packet))


if __name__ == "__main__":
    count, mbit, milliseconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    names = [f"rank{index}" for index in range(count)]
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
    try:
        tuns = [interface(name, f"10.77.0.{index + 1}") for index, name in enumerate(names)]
        print("ready", flush=True)
        forward(tuns, mbit * 1e6 / 8, milliseconds / 1e3)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name])
