import.meta.url
