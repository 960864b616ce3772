~~~python
return "tildes"
~~~
