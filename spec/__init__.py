"""Speculation: trees of guesses, who makes them, how many are worth verifying, and the walk that accepts them."""
