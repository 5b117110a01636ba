"""A participant's side of a round: local training, a site's own functions in its place, and the loop over rounds."""
