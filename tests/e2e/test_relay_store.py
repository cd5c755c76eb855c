"""Containers made and started while the daemon is killed, under a service manager that keeps
descriptors, with a real containerd: no call fails, each container runs once."""

import concurrent.futures
import random
import threading
import time

import pytest

from asking import by_annotation
from kept_shim import kept_shim
from protos import cri
from supervisor import Supervisor
from waiting import GENEROUS_S

GPU = "vendor.com/gpu"
PODS, KILLS = 12, 20


@pytest.fixture
def kept(directory, containerd, direct, closing):
    manager = closing(Supervisor(directory))
    shim = closing(kept_shim(manager)(directory, containerd.socket,
                                      plugins={"hold": "50s", "grace": "1m"}))
    shim.start()
    return shim


def test_pods_are_started_while_the_daemon_is_killed(kept, direct, make_client, make_plugin):
    """And again, as soon as the next one has begun."""
    make_plugin(kept, GPU, [f"g{number}" for number in range(PODS)])
    draw, over = random.Random(1), threading.Event()

    def kill():
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.3, 0.9))
            kept.kill()
            kept.start()
        over.set()

    def pods(number):
        """One after the other, and each to its end, until the last kill."""
        done, attempt = [], 0
        while not over.is_set() or attempt == 0:
            client = make_client(kept)
            pod = client.run_pod(f"pod{number}-{attempt}",
                                 annotations=by_annotation("app", f"{GPU}=1"))
            container = client.run(pod, "app", ["sh", "-c", "echo $PLUGIN_DEVICES; sleep 0.2"])
            done.append((pod, container, client.wait_exit(container).exit_code))
            client.RemoveContainer(container_id=container)
            client.StopPodSandbox(pod_sandbox_id=pod.id)
            client.RemovePodSandbox(pod_sandbox_id=pod.id)
            client.close()
            attempt += 1
        return done

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        killer = pool.submit(kill)
        runs = [pool.submit(pods, number) for number in range(4)]
        killer.result(4 * GENEROUS_S)
        done = [one for run in runs for one in run.result(4 * GENEROUS_S)]
    assert len(done) >= 4 and all(code == 0 for _, _, code in done)
    assert not direct.ListContainers(filter=cri.ContainerFilter()).containers
