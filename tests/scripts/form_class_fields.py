class A:
    x = 1
    __y = 2
    z = 3

    @property
    def y(self):
        return self.__y


return [A().x, A().y, A.z]
