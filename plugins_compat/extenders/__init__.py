"""Scheduler extenders: other people's servers that filter, score, bind and preempt over HTTP."""
