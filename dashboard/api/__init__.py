"""HTTP routes beside the Streamlit app."""
