"""From examples to tokens: the prompt, its encoding, and a participant's tokenised examples in batches."""
