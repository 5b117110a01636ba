"""All measurements on a GPU, in parts of a few minutes each, for a machine on loan: ``make gpu``.

A part is a file in ``parts``. Its steps run in separate processes, so that one that fails, hangs or breaks the GPU does
not affect the others. A step's result is written to the part's JSON file as soon as it ends, and is not measured again.
"""
