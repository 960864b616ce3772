price = 3 € 
