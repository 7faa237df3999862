"""Several models of the objective, each credited by how well it ranks what was measured."""
