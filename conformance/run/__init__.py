"""One row → one result: call, judge, diagnose, confirm."""
