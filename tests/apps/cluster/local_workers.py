"""Workers in this process, to test the logic around them."""

from zicl.apps.cluster.pool import WorkerLostError


class LocalWorkers:
    """Make workers of a class in this process; calls whose number is in ``lost`` lose their worker."""

    def __init__(self, worker, arguments, lost=()):
        self._worker, self._arguments, self._lost, self.calls = worker, arguments, set(lost), 0

    def start(self):
        return self._worker(*self._arguments)

    def load(self, worker):
        return (id(worker), "load", worker.load)

    def submit(self, worker, call):
        self.calls += 1
        return (id(worker), self.calls, lambda: getattr(worker, call.method)(call.argument))

    def wait_any(self, futures):
        return futures[-1]

    def result(self, future):
        if future[1] in self._lost:
            raise WorkerLostError("killed")
        return future[2]()

    def stop(self, worker):
        pass
