"""How far a prediction can be trusted: calibrated probabilities, sets with a promise, shift, probably wrong labels."""
