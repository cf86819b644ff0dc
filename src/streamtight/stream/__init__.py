"""What data is: kinds, events, dependences, schemas, traces and schedules. Standard library only."""
