"""Stream items and operators: pure folds over ordered rows, with no clock, socket or cluster in them."""
