# Says how far a long script is: a bar in clients that show progress, a line on stderr in `cx run`.
steps = (inputs or {}).get("seconds") or [2, 2, 2]
answers = []
for index, duration in enumerate(steps):
    progress(index, len(steps), f"step {index + 1}")
    answers.append(await tools.everything.trigger_long_running_operation(duration=duration, steps=1))
progress(len(steps), len(steps), "done")
sum("completed" in answer for answer in answers)
