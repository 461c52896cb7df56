"""From the text of a policy to its `PolicySource`, with every problem in its place."""
