"""What a call carries: strict parsing, schemas, projections, the proposal itself."""
