"""Fuzzing: whatever bytes a reader is given, it returns, or raises one of the library's errors.

    make fuzz                     every target for a minute
    make fuzz SECONDS=300         every target for five
    make fuzz TARGETS="csv onnx"  some of them

``targets.py`` has one target per reader, ``seeds/`` small valid inputs (``make_seeds.py`` writes them), and ``found/``
inputs that once broke something: a normal test runs both. ``run.py`` starts ``one.py`` for each target.
"""
