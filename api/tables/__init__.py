"""Lists of the API as tables: parts in an order, chosen columns, and the formats JSON, CSV and Arrow."""
