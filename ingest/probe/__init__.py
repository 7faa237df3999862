"""Inside the training loop: what each rank did in every step, and when it arrived at each collective."""
