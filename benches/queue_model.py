#!/usr/bin/env python3
"""What breaks first when a thousand machines execute the runs of one queue (docs/thousand-machines.md).

    queue_model.py [--times FILE]          simulate, with measured times of runs: one a line, in seconds
    queue_model.py --measure nats://HOST:PORT   measure what a NATS server with JetStream takes, by its own protocol

A run passes four stations, each with a queue in front of it:

  front    its front end starts a process for it, on one of the cores of one of the front ends
  offers   the leader of the stream `cx-queue` stores its offer; one at a time, because a stream has one leader
  slots    one of the slots of all workers, from the grant to the end: the start of a worker process, what the script
           computes, and what it waits for its tools
  messages the NATS servers pass its messages on; each costs the same, on any of the servers

The simulation raises the rate of runs until the 99th of a hundred waits longer than a second before it begins, and says
which station it waits at. Then it doubles that station and does it again.
"""

import argparse
import heapq
import json
import random
import socket
import statistics
import sys
import time
from dataclasses import dataclass, replace

# Measured with `cargo bench --bench nats` and `--measure` on the machine of benches/README.md (2 cores). The capacities of
# servers are those of one core of it; a machine of a cluster has more of them, and a network between.
# Two cores executed 28.8 runs a second that compute 50 ms: 69 ms of a core for each, of which 19 ms are all the rest.
FRONT_SECONDS = 0.005       # of them at the front end: the start of a process, its connection, its messages
START_SECONDS = 0.014       # of them at the worker: the start of the next worker process, and the run's end
FRONT_BYTES = 6 << 20       # private memory of a front end for each run that waits or is executed
OFFERS_PER_SECOND = 200_000  # stored by one leader, in a file, without replicas
REPLICA_FACTOR = 0.1        # what is left of that with three replicas over a network: assumed, not measured
MESSAGES_PER_SECOND = 1_400_000 * 0.3  # passed on by one server; the factor is for TLS and 16,000 subjects: assumed
MESSAGES_PER_RUN = 14       # without tool calls
MESSAGES_PER_CALL = 2
BEATS_PER_SECOND = 2        # of both sides, while a run goes on

# Durations of runs from the first to the last instruction: as agents' scripts are, half of them compute little and wait
# for tools, a few compute for seconds.
CPU_SECONDS = [0.005] * 60 + [0.05] * 30 + [0.5] * 8 + [3.0] * 2
CALLS = [0] * 10 + [1] * 30 + [3] * 40 + [10] * 20
CALL_SECONDS = [0.02] * 30 + [0.2] * 50 + [1.0] * 20

WAIT_BOUND = 1.0            # seconds that the 99th of a hundred may wait before it begins
SIMULATED = 16.0            # seconds of arrivals, of which the first quarter is not counted


@dataclass(frozen=True)
class Site:
    """How much there is of everything."""

    machines: int = 1000
    cores: int = 8
    slots: int = 16         # of each machine: --concurrency
    fronts: int = 20
    front_cores: int = 8
    front_bytes: int = 24 << 30
    servers: int = 3
    streams: int = 1


class Station:
    """A number of servers with one queue."""

    def __init__(self, name, servers):
        self.name, self.busy, self.waited, self.served = name, 0.0, [], 0
        self.free = [0.0] * servers
        heapq.heapify(self.free)

    def pass_(self, at, seconds, counts):
        """When a run that arrives at this time has been served, in the order of arrival."""
        start = max(at, heapq.heappop(self.free))
        heapq.heappush(self.free, start + seconds)
        if counts:
            self.waited.append(start - at)
            self.busy += seconds
            self.served += 1
        return start, start + seconds


def simulate(site, rate, times, seed=1):
    """Runs arrive at this rate. Returns the stations, and how long each run waited in all."""
    chance = random.Random(seed)
    offers = OFFERS_PER_SECOND * REPLICA_FACTOR * site.streams
    front = Station("front", site.fronts * site.front_cores)
    stream = Station("offers", 1)
    slots = Station("slots", site.machines * site.slots)
    messages = Station("messages", site.servers)
    arrivals, at = [], 0.0
    while at < SIMULATED:
        at += chance.expovariate(rate)
        arrivals.append(at)
    # Runs arrive at each station almost in the order of the station before.
    waits, at_slots = [], []
    for at in arrivals:
        counts = at > SIMULATED / 4
        begun, done = front.pass_(at, FRONT_SECONDS, counts)
        wait = begun - at
        begun, stored = stream.pass_(done, 1 / offers, counts)
        at_slots.append((stored, wait + begun - done, counts))
    at_slots.sort()
    # Cores are shared by the slots of a machine: computing takes longer if there are more than cores, on average.
    busy_cores = 0.0
    for at, wait, counts in at_slots:
        if times:
            compute, calls, waits_for_tools = chance.choice(times), 0, 0.0
        else:
            compute = chance.choice(CPU_SECONDS)
            calls = chance.choice(CALLS)
            waits_for_tools = sum(chance.choice(CALL_SECONDS) for _ in range(calls))
        cpu = START_SECONDS + compute
        begun, done = slots.pass_(at, cpu + waits_for_tools, counts)
        count = MESSAGES_PER_RUN + MESSAGES_PER_CALL * calls + BEATS_PER_SECOND * (done - begun)
        passed, _ = messages.pass_(begun, count / MESSAGES_PER_SECOND, counts)
        if counts:
            busy_cores += cpu
            waits.append(wait + begun - at + passed - begun)
    counted = SIMULATED * 3 / 4
    use = {
        "front": front.busy / counted / (site.fronts * site.front_cores),
        "offers": stream.busy / counted,
        "slots": slots.busy / counted / (site.machines * site.slots),
        "cores": busy_cores / counted / (site.machines * site.cores),
        "messages": messages.busy / counted / site.servers,
        "memory": (slots.busy + sum(waits)) / counted * FRONT_BYTES / (site.fronts * site.front_bytes),
    }
    return use, waits


def holds(site, rate, times):
    """Whether the bound holds, and how much of everything is in use."""
    use, waits = simulate(site, rate, times)
    return max(use.values()) < 1.0 and percentile(waits, 99) <= WAIT_BOUND, use, waits


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, len(values) * part // 100)]


def most(site, times):
    """The largest rate for which the bound holds, within four in a hundred."""
    low, high = 1_000.0, 2_000.0
    while holds(site, high, times)[0] and high < 60_000:
        low, high = high, high * 2
    while high / low > 1.04:
        middle = (low + high) / 2
        if holds(site, middle, times)[0]:
            low = middle
        else:
            high = middle
    return low


GROW = {
    "front": lambda site: replace(site, fronts=site.fronts * 2),
    "offers": lambda site: replace(site, streams=site.streams * 2),
    "slots": lambda site: replace(site, slots=site.slots * 2),
    "cores": lambda site: replace(site, machines=site.machines * 2),
    "memory": lambda site: replace(site, fronts=site.fronts * 2),
    "messages": lambda site: replace(site, servers=site.servers * 2),
}


def report(times):
    site = Site()
    print("machines   slots  fronts  servers  streams   runs/s   in use: front offers  slots cores messages memory   breaks first")
    for _ in range(6):
        rate = most(site, times)
        _, use, _ = holds(site, rate, times)
        first = max(use, key=use.get)
        shown = "  ".join(f"{use[name]:4.0%}" for name in ["front", "offers", "slots", "cores", "messages", "memory"])
        print(
            f"{site.machines:8}  {site.machines * site.slots:6}  {site.fronts:6}  {site.servers:7}  {site.streams:7}"
            f"  {rate:7.0f}           {shown}        {first}"
        )
        if first == "cores":
            break
        site = GROW[first](site)


def measure(url):
    """Publishes to a stream and to a subject, and counts."""
    host, port = url.removeprefix("nats://").rsplit(":", 1)
    connection = socket.create_connection((host, int(port)))
    reader = connection.makefile("rb")
    connection.sendall(b'CONNECT {"verbose":false,"echo":false}\r\nSUB acks.* 1\r\n')
    config = {"name": "cx-model", "subjects": ["model.offers"], "retention": "workqueue", "storage": "file"}
    body = json.dumps(config).encode()
    connection.sendall(b"PUB $JS.API.STREAM.CREATE.cx-model acks.made %d\r\n%s\r\n" % (len(body), body))
    answer(reader, 1)
    count, payload = 200_000, b"x" * 76
    began = time.monotonic()
    for start in range(0, count, 500):
        connection.sendall(b"".join(
            b"PUB model.offers acks.%d %d\r\n%s\r\n" % (number, len(payload), payload)
            for number in range(start, start + 500)
        ))
        answer(reader, 500)
    print(f"offers: {count / (time.monotonic() - began):.0f} a second are stored by one leader without replicas")
    connection.sendall(b"PUB $JS.API.STREAM.DELETE.cx-model acks.gone 0\r\n\r\n")
    answer(reader, 1)
    other = socket.create_connection((host, int(port)))
    heard = other.makefile("rb")
    other.sendall(b'CONNECT {"verbose":false}\r\nSUB model.messages 1\r\nPING\r\n')
    while heard.readline() != b"PONG\r\n":
        pass
    count, payload = 400_000, b"x" * 200
    batch = b"PUB model.messages %d\r\n%s\r\n" % (len(payload), payload) * 1000
    size = len(b"MSG model.messages 1 %d\r\n%s\r\n" % (len(payload), payload))
    began = time.monotonic()
    for _ in range(count // 1000):
        connection.sendall(batch)
        left = 1000 * size
        while left:
            left -= len(heard.read(min(left, 1 << 16)))
    print(f"messages: {count / (time.monotonic() - began):.0f} a second are passed on, with the client on the same cores")


def answer(reader, count):
    """Reads this many messages."""
    while count:
        line = reader.readline()
        if line.startswith((b"MSG", b"HMSG")):
            text = reader.read(int(line.split()[-1]) + 2)
            assert b'"error"' not in text, text
            count -= 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--times", help="measured CPU times of runs, one a line, in seconds")
    arguments.add_argument("--measure", metavar="URL", help="measure a NATS server instead")
    chosen = arguments.parse_args()
    if chosen.measure:
        return measure(chosen.measure)
    times = None
    if chosen.times:
        with open(chosen.times, encoding="utf-8") as file:
            times = [float(line) for line in file if line.strip()]
        print(f"{len(times)} measured runs, {statistics.mean(times):.3f} s each", file=sys.stderr)
    return report(times)


if __name__ == "__main__":
    main()
