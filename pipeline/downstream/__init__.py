"""Whether labels help an agent: task files in ToolBench's shape, pass rates by setting, paired differences.

A study gives the same tasks to the same agent with different tools (ToolEX paper, §4.4): the annotated set, a
retriever's best, an equivalent combination. Running the agent is not done here: a task file goes out, pass or fail per
task comes back.
"""
