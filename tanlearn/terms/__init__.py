"""Networks whose log parameters are sums of terms, from coarse to fine groups of values, with edges by gain."""
