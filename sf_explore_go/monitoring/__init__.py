"""Observers of a training: TensorBoard, progress line, pictures."""
