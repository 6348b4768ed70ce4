"""What can be said: one row a quantity. Flags, help, the scenario, its schema and template come from these rows."""
