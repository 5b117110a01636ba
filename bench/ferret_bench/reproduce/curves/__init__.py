"""The paper's figures that need training, one per file; the file's name is the figure's, ``STUDY`` its definition."""
