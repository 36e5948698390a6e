"""The recurrent drafter: one step without attention, begun from the target's last hidden state (arXiv 2403.09919)."""

ARCHITECTURE = "PacelineRecurrent"  # what our own configs call it
