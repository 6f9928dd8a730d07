"""A queue as its callers see it: what they enqueue and read, how they wait, and the functions that they give."""
