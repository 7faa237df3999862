"""Routes: one router per noun."""
