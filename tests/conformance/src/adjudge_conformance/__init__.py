"""The shared suite that every integration of Adjudge passes."""
