"""Several hosts on one machine: network namespaces and their links, control groups, and programs in them."""
