"""The client: the one way to answers, of a store of this machine (`Local`) or of a server (`Remote`)."""
