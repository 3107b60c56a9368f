"""The perf gate: verified timing, audits, intervals, floors."""
