"""The road: whatever was said becomes one loop, which every command asks; nothing else chooses what nobody said."""
