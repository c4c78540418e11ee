"""How good are the labels on your own texts: a small sample, labelled by hand, says so."""
