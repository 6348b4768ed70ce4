"""What to do, and whom to trust: predictions judged against measurements."""
