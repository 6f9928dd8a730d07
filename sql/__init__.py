"""SQL of the product, one function or view a file; shipped as ``pgcombine.sql``."""
