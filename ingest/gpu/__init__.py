"""The vendors' GPU libraries, apart from collectors: sessions, remembered refusals, epochs."""
