import streamlit as st

st.title("Not here yet")
