"""Pure loops over arrays, one equation a function; the modules around them check, cast and allocate."""
