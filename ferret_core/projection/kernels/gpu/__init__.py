"""GPU kernels: Triton; entries are computed in registers, no basis is ever stored.

Without a GPU, Triton's interpreter runs these kernels on CPU tensors, slowly: ``TRITON_INTERPRET=1`` must be in the
environment before triton is imported.
"""
