"""The rivals of MFTR: EasyTool, PLUTo and OnlineRAG, the ablation variants and the field analyses of its paper."""
