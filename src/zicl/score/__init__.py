"""The method: experts, calibration, ensemble, results."""
