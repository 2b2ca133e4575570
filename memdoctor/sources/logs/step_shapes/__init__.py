"""The shapes of lines that tell numbers of training steps, one file each.

A shape is a function from the bytes of a line to its values, or to None. Units inside: seconds are kept as milliseconds in ``ms`` and
``data``, memory is bytes, everything else is as printed.
"""
