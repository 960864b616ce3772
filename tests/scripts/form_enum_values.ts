enum Color { Red, Green = 5, Blue }
return [Color.Red, Color.Blue, Color[5]]
