"""Run the same work on a Ray cluster: split, embed, search, evaluate, classify; results equal those of one machine.

Read connect (the cluster and its errors), worker (what every worker checks first), pool and ray_workers (calls to
workers that may be lost), then what they run: ray_data (split, embed), search, evaluate, classify.

To run another kind of work on workers, write a class with ``load()`` and one method per call, like ``ClassifyWorker``,
and give it to ``RayWorkers``. Only this folder knows of Ray, and only ray_workers imports it at the top.
"""
