"""What every command shares: its flags, inputs and faults, and how an answer leaves."""
