class Settings:
    timeout = 30
    retries = timeout / 0


Settings
