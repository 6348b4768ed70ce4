"""`rlsize validate`: predictions against recorded measurements, class by class."""
