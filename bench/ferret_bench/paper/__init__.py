"""The paper's tables and figures, measured again with this code, and those that the paper leaves out."""
