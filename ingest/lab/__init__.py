"""The fault lab: hosts on one machine, training between them, and faults whose truth is known (`crosswind[lab]`)."""
