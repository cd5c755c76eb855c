"""A daemon that has much to do: clients that begin and end pods one after the other."""

import contextlib
import threading

import grpc

from asking import by_annotation
from waiting import GENEROUS_S

CLIENTS = 4


@contextlib.contextmanager
def busy(shim, make_client, wants):
    """Pods "pod0-0" and so on, each with a container that asks for `wants`, as long as the block
    lasts. All of it has worked when the block is left."""
    over, failed = threading.Event(), []

    def work(name):
        client, number = make_client(shim), 0
        try:
            while not over.is_set():
                pod = client.run_pod(f"{name}-{number}", annotations=by_annotation("main", wants))
                client.run(pod, "main")
                client.remove_pod(pod.id)
                number += 1
        except grpc.RpcError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"pod{one}",)) for one in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(GENEROUS_S)
    assert not failed
