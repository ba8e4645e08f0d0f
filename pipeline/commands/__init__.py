"""The verbs of the command line, one topic a module; heavy imports happen inside the verbs."""
