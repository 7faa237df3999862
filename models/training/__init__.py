"""Training of models in the background: the trainers, and the operations that run them."""
