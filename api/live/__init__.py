"""Events as they are stored: to streams of clients, and to webhooks."""
