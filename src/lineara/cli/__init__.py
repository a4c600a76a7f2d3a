"""The command line on text programs: `python -m lineara check FILE.lina` and its sisters."""
