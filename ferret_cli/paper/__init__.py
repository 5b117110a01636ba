"""The paper's figures, measured again with this code, and those that the paper leaves out."""
