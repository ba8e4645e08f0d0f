"""What people see: Streamlit pages, charts and the HTTP API (top floor)."""
