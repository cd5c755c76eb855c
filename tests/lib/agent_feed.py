"""The daemon's end of the agent's feed, scripted.

    feed = AgentFeed(socket); feed.start()
    feed.wait_fact(agent.POD, "uid-1")         # the Pod as it was told
    answer = feed.order(set_capacity=...)      # its Answer
    feed.wish(wanted=True, grace_ms=30000)     # of the machine's shutdown, from now on and to each agent that comes
    feed.wait_shutdown(lambda one: one.locked, "it is locked")
"""

import concurrent.futures
import pathlib
import queue
import threading

import grpc

from protos import AGENT_FEED, agent
from waiting import GENEROUS_S, wait_until

_TYPES = {agent.NODE: agent.Node, agent.POD: agent.Pod, agent.SLICE: agent.Slice, agent.TAINT_RULE: agent.TaintRule}


class AgentFeed:
    """`kinds`: what is wanted besides the node. `report_fails`: (code, words), or None. `takes_answers`: while it is
    cleared they have to wait."""

    def __init__(self, socket, kinds=(agent.POD, agent.SLICE)):
        self.socket = pathlib.Path(socket)
        self.kinds = kinds
        self.watches = 0
        self.reports = []
        self.answers = []
        self.facts = {}
        self.state = agent.State()
        self.shutdown = agent.Shutdown()
        self.report_fails = None
        self.takes_answers = threading.Event()
        self.takes_answers.set()
        self._wish = None
        self._next_id = 1
        self._streams = set()
        self._server = None
        self._lock = threading.Lock()

    def start(self):
        self.socket.parent.mkdir(exist_ok=True)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16),
                                   options=[("grpc.http2.max_ping_strikes", 0),  # it asks whether we live
                                            ("grpc.max_receive_message_length", -1)])

        def method(kind, handle, request):
            return kind(handle, request.FromString, lambda message: message.SerializeToString())

        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(AGENT_FEED.strip("/"), {
            "Watch": method(grpc.unary_stream_rpc_method_handler, self._watch, agent.WatchRequest),
            "Report": method(grpc.unary_unary_rpc_method_handler, self._report, agent.ReportRequest),
            "Answer": method(grpc.unary_unary_rpc_method_handler, self._answer, agent.AnswerRequest)})])
        assert self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()

    def stop(self):
        """Connections are cut, as when the daemon is killed."""
        if self._server is None:
            return
        self.takes_answers.set()
        for stream in list(self._streams):
            stream.put(None)
        self._server.stop(grace=None).wait(GENEROUS_S)
        self._server = None

    def send(self, **fields):
        """A message, to whoever watches."""
        with self._lock:
            for stream in list(self._streams):
                stream.put(agent.WatchResponse(daemon_version="scripted", **fields))

    def wish(self, **fields):
        with self._lock:
            self._wish = agent.ShutdownWish(**fields)
        self.send(shutdown=self._wish)

    def wait_watched(self, count):
        """So many agents have come so far; what earlier ones have told of a shutdown is no more."""
        wait_until(lambda: self.watches >= count, f"agent {count} watches; there were {self.watches}")

    def wait_shutdown(self, condition, what):
        return wait_until(lambda: condition(self.shutdown) and self.shutdown, f"{what}; it is {self.shutdown}")

    def begin(self, number=None, **what):
        """Gives an order, once somebody watches; its id."""
        wait_until(lambda: self._streams, "an agent watches")
        if number is None:
            number, self._next_id = self._next_id, self._next_id + 1
        self.send(orders=[agent.Order(id=number, **what)])
        return number

    def answers_to(self, number):
        return [one for one in list(self.answers) if one.id == number]

    def wait_answer(self, number, count=1):
        return wait_until(lambda: len(found := self.answers_to(number)) >= count and found[-1],
                          f"answer {count} to order {number}; there are {self.answers}")

    def order(self, **what):
        """Its answer. As a daemon does, it gives the order again to an agent that comes, or comes again, meanwhile."""
        watches = self.watches
        number = self.begin(**what)

        def answer():
            nonlocal watches
            if self.watches != watches:
                watches = self.watches
                self.begin(number, **what)
            return (self.answers_to(number) or [None])[-1]

        return wait_until(answer, f"an answer to order {number}; there are {self.answers}")

    def wait_fact(self, kind, uid, condition=lambda one: True):
        return wait_until(lambda: (one := self.facts.get((kind, uid))) and condition(one) and one,
                          f"a fact {uid}; there are {sorted(self.facts)}")

    def wait_gone(self, kind, uid):
        wait_until(lambda: (kind, uid) not in self.facts, f"{uid} is gone; there are {sorted(self.facts)}")

    def wait_state(self, condition, what):
        return wait_until(lambda: condition(self.state) and self.state, f"{what}; it is {self.state}")

    def _watch(self, _request, context):
        stream = queue.SimpleQueue()
        context.add_callback(lambda: stream.put(None))
        with self._lock:
            self.watches += 1
            self.shutdown = agent.Shutdown()  # of one that has gone
            stream.put(agent.WatchResponse(daemon_version="scripted", kinds=[agent.NODE, *self.kinds],
                                           shutdown=self._wish))
            self._streams.add(stream)
        try:
            while (message := stream.get()) is not None:
                yield message
        finally:
            self._streams.discard(stream)

    def _report(self, request, context):
        if self.report_fails:
            context.abort(*self.report_fails)
        facts = {} if request.whole else dict(self.facts)
        for fact in request.facts:
            if fact.value:
                facts[fact.kind, fact.key] = _TYPES[fact.kind].FromString(fact.value)
            else:
                facts.pop((fact.kind, fact.key), None)
        self.facts = facts
        self.state = request.state
        if request.HasField("shutdown"):
            self.shutdown = request.shutdown
        self.reports.append(request)
        return agent.ReportResponse()

    def _answer(self, request, _context):
        self.takes_answers.wait()
        self.answers.append(request)
        return agent.AnswerResponse()
