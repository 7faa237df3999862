"""The probe inside the training loop: steps, phases and collectives of every rank."""
