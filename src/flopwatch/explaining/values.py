"""Causes in operators that work value by value, or sum up rows: functions, sums, norms, pools."""
