print("\u0000 \u001b[31mred \ud800 \u202e")
