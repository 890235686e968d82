"""The same questions to other libraries, each in an environment of its own: error and time at ε = 1."""
