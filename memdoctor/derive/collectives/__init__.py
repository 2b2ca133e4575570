"""Who holds up whom: from the flight recorders of all ranks to the ranks at fault. Pure; the door is ``judging.verdicts``."""
