"""The method: from a text to a prediction with scores, probabilities and reasons.

pipeline (retrieve → label → prompt → score) · experts (scores without a prompt) · ensemble (join them, minus priors) ·
calibration · self_labels · results · factory (settings → ensemble).

To add an expert, give it ``scores(text, labels)`` in experts.py and a term in ``Ensemble._terms``, and a setting in
config.Scoring that factory.py reads. To add a calibration, add its name in config.Calibration and its probes in
calibration.make_probes.
"""
