"""The tuner: spaces, studies, the search for good configurations, and the services that hand out trials."""
