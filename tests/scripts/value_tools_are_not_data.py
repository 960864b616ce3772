return tools
