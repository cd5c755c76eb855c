"""The machine goes down with real containers: those of pods with devices end in order, and nothing comes back before it is
cancelled. Who tells of it is scripted; test_shutdown.py has a real logind."""

import grpc
import pytest

from asking import by_annotation, refused
from ctl import ctl_json
from protos import cri
from scripted_agent import ScriptedAgent
from waiting import wait_until

NULL = "example.com/null"
DOWN = "node is shutting down"
# Each says when it is told to end; one does, one does not.
ENDS = ["sh", "-c", "trap 'exit 3' TERM; while :; do sleep 0.1; done"]
DOES_NOT = ["sh", "-c", "trap 'echo told >> /told' TERM; while :; do sleep 0.1; done"]
GRACE = {"io.kubernetes.pod.terminationGracePeriod": "6"}


@pytest.fixture
def shim(make_shim, directory, direct):
    return make_shim(plugins={"hold": "300ms"}, devices=[{"resource": NULL, "path": "/dev/null", "count": 2}],
                     cluster={"enabled": True, "socket": str(directory / "run" / "agent.sock")},
                     shutdown={"grace": "60s"})


@pytest.fixture
def tell(shim, directory, closing):
    """What an agent tells; another one each time, since the daemon may be another."""
    def say(**shutdown):
        shim.wait_control()
        one = closing(ScriptedAgent(directory / "run" / "agent.sock"))
        one.start()
        one.tell(known=True, **shutdown)

    return say


def wait_state(shim, state):
    wait_until(lambda: ctl_json(shim, "status")["shutdown"]["state"] == state, f"the shutdown is {state}")


def sandbox(client, pod):
    return client.PodSandboxStatus(pod_sandbox_id=pod.id).status.state


def test_who_has_a_device_ends_its_containers_then_its_sandbox(shim, tell, make_client):
    """Each by itself if it does, else when its grace is over; the sandbox behind both, and nothing is removed."""
    client = make_client(shim)
    pod = client.run_pod("holder", annotations=by_annotation("ends", f"{NULL}=1"))
    ends = client.run(pod, "ends", ENDS, annotations=GRACE)
    stays = client.run(pod, "stays", DOES_NOT, annotations=GRACE)
    other = client.run_pod("other")
    bystander = client.run(other, "app", DOES_NOT)
    tell(under_way=True, limit_ms=120_000)
    assert client.wait_exit(ends).exit_code == 3  # by itself, when it was told
    if client.ContainerStatus(container_id=stays).status.state == cri.CONTAINER_RUNNING:
        shim.kill()  # the next daemon goes on with what is left
        shim.start()
        client.reconnect()
        shim.wait_control()
    wait_state(shim, "over")
    ended = [client.ContainerStatus(container_id=one).status for one in (ends, stays)]  # they are there
    assert [one.exit_code for one in ended] == [3, 137]
    assert sandbox(client, pod) == cri.SANDBOX_NOTREADY
    assert sandbox(client, other) == cri.SANDBOX_READY  # whose priority nobody knows
    assert client.ContainerStatus(container_id=bystander).status.state == cri.CONTAINER_RUNNING
    for make in (lambda: client.run_pod("new"), lambda: client.create(other, "more", ENDS)):
        with refused(grpc.StatusCode.UNAVAILABLE, DOWN):
            make()
    tell(under_way=False)
    wait_state(shim, "none")
    anew = client.run_pod("holder", uid=pod.uid, attempt=1, annotations=by_annotation("ends", f"{NULL}=1"))
    again = client.run(anew, "ends", ENDS, attempt=1, annotations=GRACE)
    assert client.ContainerStatus(container_id=again).status.state == cri.CONTAINER_RUNNING
