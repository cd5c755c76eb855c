"""A directory that stands for /sys/devices/system/node of a machine with two NUMA nodes, whatever
this machine has: each of them has half of its processors."""

import os
import pathlib

_PROCESSORS = pathlib.Path("/sys/devices/system/cpu")
_MEMORY = "Node {node} MemTotal: 4194304 kB\nNode {node} MemFree: 4194304 kB\n"


def write_nodes(directory):
    count = os.cpu_count()
    halves = [range(count // 2), range(count // 2, count)]
    for node, processors in enumerate(halves):
        one = directory / f"node{node}"
        (one / "hugepages").mkdir(parents=True)
        (one / "meminfo").write_text(_MEMORY.format(node=node))
        (one / "distance").write_text("10 20\n" if node == 0 else "20 10\n")
        (one / "cpulist").write_text(",".join(map(str, processors)) + "\n")
        for number in processors:
            (one / f"cpu{number}").symlink_to(_PROCESSORS / f"cpu{number}")
    for name in ("online", "possible", "has_cpu"):
        (directory / name).write_text("0-1\n")
