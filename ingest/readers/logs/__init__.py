"""What training programs print."""
