"""Study services: they hand out the trials of studies under leases, from a catalog or a shared folder."""
