"""Workers in this process, for the logic around them."""

from zicl.apps.cluster.pool import WorkerLostError


class HereCrew:
    """Makes workers of a class here; the n-th call to them is lost if its number is among ``lost``."""

    def __init__(self, worker, arguments, lost=()):
        self._worker, self._arguments, self._lost, self.calls = worker, arguments, set(lost), 0

    def hire(self):
        return self._worker(*self._arguments)

    def ready(self, worker):
        return (id(worker), "ready", worker.ready)

    def start(self, worker, call):
        self.calls += 1
        return (id(worker), self.calls, lambda: getattr(worker, call.method)(call.argument))

    def first(self, futures):
        return futures[-1]

    def result(self, future):
        if future[1] in self._lost:
            raise WorkerLostError("killed")
        return future[2]()

    def dismiss(self, worker):
        pass
