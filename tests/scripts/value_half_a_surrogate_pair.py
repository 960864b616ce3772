return ["\ud800", "\ud83d\ude00", "a\udfffb"]
