"""Charts as pure functions: a frame in, a Plotly figure or an SVG out."""
