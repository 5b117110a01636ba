"""The paper's tables and figures, measured again with this code, and others that are not in the paper."""
