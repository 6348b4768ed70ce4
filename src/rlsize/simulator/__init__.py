"""What happens over time: an event loop, the actors of an RL loop, and what they leave behind."""
