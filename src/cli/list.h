/* every command; COMMAND() is defined by who includes this */
COMMAND(quantize)
COMMAND(eval)
COMMAND(bench)
COMMAND(inspect)
COMMAND(footprint)
