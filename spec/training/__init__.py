"""Training of drafters: the model writes the text, and its own hidden states and distribution are what is learned."""
