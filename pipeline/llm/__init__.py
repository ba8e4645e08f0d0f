"""Questions to language models: what is asked, what came back, what it cost, and never more than the budget."""
