"""The aim of a study: objectives, limits and hours, and the study files that state them."""
