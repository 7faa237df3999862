"""Training of models in the background: every model that is made, and whose turn it is."""
