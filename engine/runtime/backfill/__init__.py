"""Back-fill: a whole network over recorded input, as a batch on Spark."""
