module example.com/parley-server

go 1.24
