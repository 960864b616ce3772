class A { m(@d x) {} }
