return await llm.ask("What?")
