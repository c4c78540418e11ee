"""Run tasks × methods × inferences × seeds, and store one row of raw scores per example.

Configure: tasks, examples, methods, experiment. Load: context (with training), manifest. Run: plan, run (with controls,
overlap, eta), store (with timing). Before and after a run: estimate, verify.

To add a task, add a table to ``data/tasks.toml`` or give a file with ``--task-file``. To add a method, add it to
``EXPERIMENT_METHODS`` in methods.py, or define it in an experiment: ``[define.NAME]``. To add a control, extend
``ExperimentMethod.kind``, write its scores in controls.py, and call it in ``Runner._control_scores``.
"""
