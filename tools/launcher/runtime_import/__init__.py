"""Reading a MarinSkyRL checkout as data: a runtime manifest, and what it changes."""
