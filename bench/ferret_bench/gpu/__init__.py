"""Everything that is asked of a GPU, in parts that each fit into some minutes of one that is lent: ``make gpu``.

A part is a file in ``parts``; its steps run in processes of their own, so that one that fails, hangs or breaks the GPU
costs the others nothing. What a step found is in the part's JSON file as soon as it has ended, and is not done again.
"""
