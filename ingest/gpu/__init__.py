"""Access to the vendors' GPU libraries: sessions, remembered refusals, epochs of the driver."""
