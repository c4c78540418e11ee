"""Export a classifier that asks no language model: two ONNX files and a script that needs neither zicl nor torch.

Read run (``export``, from a fitted classifier to a folder), head (the classifier's formula as an ONNX graph), script
(``predict.py`` of the folder, copied as it is).
"""
