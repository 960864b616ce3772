
        rows = []
        rows[0]
