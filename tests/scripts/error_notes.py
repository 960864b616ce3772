error = ValueError("bad row")
error.add_note("row 3 of table `users`")
error.add_note("write `null` for no value")
raise error
