class ApiError(Exception):
    def __init__(self, status, body):
        super().__init__(status, body)
        self.status = status


raise ApiError(404, {"reason": "gone"})
