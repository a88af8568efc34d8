"""What is to be learned: kinds of targets, metrics that score them, and the objective that training follows."""
