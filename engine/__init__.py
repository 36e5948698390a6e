"""The engine: sequences, pages, one step at a time. It sees token ids, never text."""
