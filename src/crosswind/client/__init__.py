"""The client: the one way to answers, from a store of this machine (`Local`) or from a server (`Remote`)."""
