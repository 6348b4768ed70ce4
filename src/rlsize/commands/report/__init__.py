"""`rlsize report`: a capacity review as one page that needs nothing beside it."""
